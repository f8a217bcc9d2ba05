"""The words of a reply around its verdict, and the verdict in words: a line that states the score.

No list of phrases holds all the ways to quote a verdict or to take it back. So it is the other way round:
what leads up to it must make it the judge's own, and each sentence that follows must be about the response.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from plaudit.errors import UnreadableVerdict
from plaudit.judges.numerals import NUMBER, said
from plaudit.judges.reply_objects import FoundAt

MAX_CLAUSE = 300
"""Characters of the clause that may lead up to a verdict."""
MAX_LINES = 100
"""Lines with a score of which one is looked for; a verdict has one, a table has none."""
MAX_SEQUEL = 4_000
"""Characters of explanation that may follow a verdict."""

SCORE_NOUN = r"(?:score|rating|grade)"
_NOUN = (
    r"verdict|evaluations?|judge?ment|assessment|scores?|ratings?|grades?|results?|output|json|object|decision"
    r"|conclusion|reply|feedback|analysis|summary|review|rubric|criteria|évaluation|bewertung|urteil|ergebnis"
    r"|evaluación|veredicto|resultado|avaliação|valutazione|оценка|вердикт"
    r"|(?:以下|这|是|我|最终|综合|对|该|此|回答|回复|的|根据[^,:]{0,30}|如下|为|が|は|です)*+"
    r"(?:评价|评分|评估|结果|判断|裁决|評価|判定|평가|결과)(?:结果|如下|为|是|です|입니다)*+"
)
_VERB = (
    r"rate|score|assign|give|judge|conclude|award|evaluate|evaluated|grade|return|respond|provide|submit|issue|find"
    r"|found|write|(?:evaluat|compar|assess|judg|scor|review|grad)ing"
)
_OF_THE_RESPONSE = (
    rf"(?:of|for|on|about|to|its|{_VERB}) (?:(?:the|this|that|each|both|these|two) ){{0,2}}(?:\w{{1,20}} )?"
    r"(?:responses?|answers?|submission|candidate(?:['’]s)?)|my (?:final )?(?:response|answer)"
    r"|the final answer|(?:evaluation|assessment|review) of (?:the|this|your) \w{1,20}"
    r"|the response (?:receives|gets|earns|is assigned|scores)"
    r"|response(?= evaluation| assessment|$)|answer$"
)
_OWN = re.compile(
    rf"(?:(?:{_OF_THE_RESPONSE}|{_NOUN}|{_VERB}"
    r"|here|is|are|comes|below|following|follows?|this|the|a|my|our|own|one|i|we|would|will|can|d|s|ll|have|hereby"
    r"|now|so|therefore|thus|hence|and|finally|then|okay|ok|sure|certainly|to|with|for|of|on|by|about|from|in|as"
    r"|based|according|per|arrive|at|final|overall|requested|required|asked|structured|official|resulting|provided|let|me|what"
    r"|how|you|go|your|it|each|both|two|only|just|content|scale|instructions|format|form|reason|state|reads"
    r"|summari[sz]e|assistant|judge|voici|hier|ist|aquí|está|tienes|ecco|aqui|вот|mon|ma|meine?|mia?|minha|la|le|l"
    r"|die|das|el|il|моя|demandée|finale?|lautet|folgt|wie|es|est|siguiente|suivante|seguente|seguinte|como|come|sigue|다음은)(?!\w)[\W_]*+)++",
    re.IGNORECASE,
)
"""Words in which a judge introduces its verdict: others make it somebody else's, or no verdict."""
_EMPTY = re.compile(
    r"(?:(?:as|in|to|with|for|of|on|by|about|from|format|form|reason|content|it|one|two)\W*)*|.* a", re.I
)
"""Words of these that introduce nothing."""
_HYPOTHETICAL = re.compile(
    r"\b(?:if|had|were|unless|assum\w+|suppos\w+|imagin\w+|would have|could|might|should|otherwise|e\.g"
    r"|hypothetical\w*|for instance|examples?|samples?|templates?|placeholders?|drafts?|tempted|instead|not"
    r"|never|cannot|alone|ignoring|without|except|other|another"
    r"|second judge|first (?:thought|impression|instinct)|initial\w*|earlier|previous\w*|quot\w+|forged"
    r"|fake\w*|hidden|inject\w*)\b|n['’]t\b"
    r"|\b(?:si|falls|wenn|exemple|beispiel\w*|ejemplo|exemplo|esempio|если|пример|например)\b"
    r"|如果|例|예시|예를|比如|假如|假设|若|格式|声称",
    re.IGNORECASE,
)
_COMPLETE = re.compile(
    r"(?<!e\.g)[.!?。！？)\"”`-][*_ ]*$|[:/=][*_ ]*\d+(?:\.\d+)?[*_ ]*$|^\s*(?:[-*•|]|\d+[.)])\s"
    r"|\b(?:correct|right|wrong|incorrect|accurate|complete|brief|met|missing|good|fair|poor|high|medium|low|adequate"
    r"|excellent|yes|no|partly|clear|weak|strong|polite|ok)$",
    re.IGNORECASE,
)
"""A line that leads up to nothing: a sentence, a value, an item of a list or a row of a table."""
_CONTROL = r"<[|｜][\w▁]{1,40}[|｜]>(?:[\w.:-]{1,60}(?=<[|｜]))?"
_TAG = rf"(?:</?[\w:-]{{1,40}}>|{_CONTROL}|\[/?(?:INST|THINK|TOOL_\w{{1,16}})\])"
"""Markup, and the name of a function between two control tokens."""
_MARKUP_TAG = re.compile(_TAG)
_FENCE_OPENED = re.compile(r"(?:^|\n)[ \t]{0,9}(?:`{3,6}|~{3,6})\w{0,10}[ \t]{0,9}\n?$")


_ASIDE = re.compile(r", (?:out of|from|on a scale) [^,:]{1,30},|\([^()A-Za-z]{1,30}\)")


_REASON_LINE = re.compile(
    r"\W{0,4}(?:reason(?:ing)?|rationale|explanation|justification|理由)\W{0,4}:", re.IGNORECASE
)


def _without_reason(before: str) -> str:
    """What stands before a verdict whose reason comes first, in a tag or a line of its own."""
    text = before.rstrip()
    if text.endswith("</reason>"):
        return before[: max(text.rfind("<reason>"), 0)]
    start = text.rfind("\n") + 1
    return before[:start] if _REASON_LINE.match(text, start) else before


def check_introduction(before: str) -> None:
    """The words that lead up to the object, if there are any: they must make it the judge's own."""
    text = _MARKUP_TAG.sub("", _FENCE_OPENED.sub("\n", _without_reason(before))).rstrip(" \t`[{*_")
    line = text.rstrip().rsplit("\n", 1)[-1].strip(" \t*_#")
    if line.startswith(">"):
        raise UnreadableVerdict("the verdict is inside a quotation")
    if not line or (text.endswith("\n") and _COMPLETE.search(text.rstrip().rsplit("\n", 1)[-1])):
        return
    sentence = re.split(r"(?<!e\.g)[.!?。](?:\s|$)|\bbut\b", _ASIDE.sub("", line))[-1]
    clauses = [part for part in re.split(r"[,;:]\s?|\s[-–—]\s", sentence) if re.search(r"\w", part)]
    clause = clauses[-1].strip(" *_`") if clauses else ""
    is_own = _OWN.fullmatch(re.sub(r"^[^\w]+", "", clause)) and not _EMPTY.fullmatch(clause)
    is_silent = not clauses and not re.search(r"[>/~]", sentence)
    if len(clause) > MAX_CLAUSE or not (is_own or is_silent) or _HYPOTHETICAL.search(sentence):
        raise UnreadableVerdict("the words before the verdict do not make it the judge's own")


_ABOUT_THE_VERDICT = re.compile(
    r"\b(?:i(?!\.e)|me|my|mine|myself|we|us|our|you|your|scor(?:e|es|ed|ing)|verdicts?|grad(?:e|es|ed|ing)"
    r"|ratings?|json|object|format|above|previous\w*|earlier|premature|edit|correction|corrected|updat\w+"
    r"|revis\w+|actually|in (?:truth|fact|reality)"
    r"|wait|hm+|oops|hold on|sorry|apologies|apologi[sz]e|please|ignor\w+|disregard\w*|discard\w*|strike"
    r"|scratch|withdraw\w*|retract\w*|amend\w*|re-?(?:consider|read|check|evaluat|assess|think|scor)\w*"
    r"|example|sample|hypothetical\w*|otherwise(?=.{0,40}\b(?:would|is a)\b)|quot\w+|forged"
    r"|fake\w*|inject\w*|manipulat\w+|after all"
    r"|hindsight|reflection|second thoughts?|too (?:high|low|generous|harsh|lenient|strict|kind)|no longer"
    r"|never ?mind|on balance|fairer|hasty|backwards|wrong way|swapped|mixed up|taken? back"
    r"|deserv\w+|worth\w*|less|(?:better|worse|more) than (?:that|this|it)|meant|number|output"
    r"|fails?(?! to)|half|wrong (?:response|answer) was|braces|brackets|preceding|looked at"
    r"|different (?:response|answer|paragraph|task)"
    r"|(?:zero|three|four|five|six|seven|eight|nine|ten)\b(?! of\b| (?!points?\b|marks?\b)\w+s\b)"
    r"|marks?|judges?|lower\w*|higher|rais\w+|reduc\w+|opposite|reverse"
    r"|this(?! (?:response|answer|task|question)\b)|void\w*|invalid\w*|provisional|mis(?:read|judged|took)"
    r"|gets?|got|receives?|an? (?:zero|one|two|three|four|five|six|seven|eight|nine|ten))\b|\?",
    re.IGNORECASE,
)
_CONFIRMS = re.compile(
    r"\b(?:please )?let me know\b.*|\bfeel free\b.*|\b(?:is there )?anything else\b.*\?"
    r"|\b(?:i )?hope (?:this|that) helps\b"
    r"|\b(?:this|that) (?:is|concludes) (?:my|the) (?:final )?(?:verdict|evaluation|assessment|decision)\b"
    r"|\bi (?:have )?(?:deducted|subtracted|took off|penali[sz]ed|evaluated only|judged only)\b"
    r"|\bi (?:have )?weighed (?:it|the response) against the \w+.*"
    r"|^\W*(?:good|great|nice|excellent) (?:job|work)\W*$|^\W*no further comments?\W*$"
    r"|\bthe deduction (?:is|was) for\b"
    r"|\b(?:a point|one point|points) (?:was|is|were) (?:deducted|lost|off|subtracted)\b"
    r"|^\W*(?:(?:final )?(?:verdict|score|evaluation)|done|that is all|thank you|thanks|end of \w+)\W*$"
    r"|\b(?:the|this|my) (?:score|verdict|rating|evaluation|assessment) (?:reflects|accounts for"
    r"|is based (?:solely )?on|indicates that)\b"
    r"|^evaluated (?:by|against|according to) the rubric\b.*|^希望[^我]{0,6}有(?:所)?帮助\W?$"
    r"|\b(?:the )?(?:scores?|scale|ratings?) (?:are |is |runs? |goes |from |on |a |scale )*(?:0|1)\b"
    r".{0,40}?\b\d+\b(?:.{0,30}\b(?:best|perfect|highest)\b.{0,9})?|\bconfidence\s?: ?[\w.%]{1,12}$"
    r"|\bn['’]hésitez pas\b.*|\bno dudes? en\b.*|\b(?:lassen sie|lass) (?:es )?mich wissen\b.*",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"(?:理由|原因|说明|解释|评语|点评|根拠)\s?:[^我分应误更修重打抱0-9]*+|"
    r"(?:explanation|justification|reason(?:ing)?|rationale|strengths?|weakness(?:es)?|pros|cons|summary|analysis"
    r"|correctness|accuracy|clarity|brevity|completeness|style|comments?|details?|step \d+"
    r"|key points|breakdown|follow-up|suggested fix|suggestions?"
    r"|improvements?|what could be improved|observations?|remarks?)"
    r"(?:\s?:.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_THE_RESPONSE = re.compile(
    r"(?:(?:note(?: that|\s?:)\s?)?(?:(?:in short|in summary|to improve|however|but|also|additionally"
    r"|moreover|furthermore|still|overall|thus|therefore|so|and),? )?"
    r"(?:(?:the|this|its|both) (?:\w{1,20} )?(?:responses?|answers?|solutions?|explanations?"
    r"|texts?|author|candidate|student|code|reasoning|arguments?|values?|units?|statements?|proof|essay|story"
    r"|reference|claims?|first|second|two|paragraphs?|sentences?|steps?|point|method|conclusion|wording|tone)"
    r"|both|an? (?:\w{1,20} ){0,2}(?:response|answer|solution|essay)"
    r"|it (?:\w+ly |also |still |just )?(?!was\b)(?:\w+s|does))\b.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_THE_RESPONSE_IN_CHINESE = re.compile(
    r"(?:(?:满分(?:为|是)?\s?\d+\s?分|(?:该|此|这个)?(?:回答|答案|回复)[^我分应误更修重打抱等其0-9]{1,80})[。，,；]?\s?)+"
)
_MARKUP = re.compile(rf"{_TAG}|~{{3,6}}|[`*_#>]")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b\d\.)\s(?![a-z]|\d+\.\d)|\n")
_BRACED = re.compile(r"\{[^{}]{0,80}\}")
_AMOUNT = re.compile(
    r"\b(?:deserves?|worth|warrants?|merits?|earns?)\b[^\d]{0,20}?(-?\d+(?:\.\d+)?)\b"
    r"|(?<!answer is )(?<!solution is )(?<!step )(?<!out of )(?<![\w./])"
    r"(-?\d+(?:\.\d+)?)(?!\d|\.\d|\s?[a-z%°])",
    re.IGNORECASE,
)
"""A number that may be a score: it has no unit, and is not what the task's answer is."""


_ABOUT_THE_RESPONSE_ABROAD = re.compile(
    r"(?:die antwort|la (?:réponse|respuesta|risposta)|a resposta|ответ)\b"
    r"(?!.*\b(?:ich|mein\w*|bewert\w+|punkt\w*|korrektur|falsch|doch|eigentlich|je|j|ma|mon|notes?|corrig\w*"
    r"|erreur|finalement|en fait|yo|mi|puntuación|nota|corrección|io|mio|voto|eu|minha|я|мо[йяю]|оценк\w*"
    r"|score)\b)\D*",
    re.IGNORECASE,
)


_CODE = re.compile(r"```(?!json)[a-z]{1,10}\n[^`]{0,2000}```")
_ITEM = re.compile(r"^\s*(?:[•-]|\d{1,2}[.)])\s")
_CONTENT = re.compile(
    r"\b(?:(?:in)?(?:correct|accura|complet|relevan)\w*|wrong|errors?|mistakes?|mention\w*|missing|lacks?|omit\w*"
    r"|details?|sentences?|paragraphs?|word(?:y|ing)|concis\w+|brief\w*|clear\w*|superfluous|unnecessary"
    r"|redundan\w+|factual\w*|facts?|grammar|spelling|steps?|units?)\b",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(
    r"\b(?:evaluations?|assessments?|judge?ments?|points?|marks?|deduct\w+|repl(?:y|ies)|results?|prompts?"
    r"|templates?|messages?|author\w*|disclaimer|placeholders?|typo|tests?|testing|generated|produced|copied"
    r"|verbatim|taken|made|random\w*|automatic\w*|misapplied|unscored|caution|abstain|confiden\w+|pending"
    r"|before|preceding|blocks?|braces?|brackets?|fields?|lines? before|figures?|numbers?|lowest|highest"
    r"|minimum|maximum|earns?|due|appl(?:y|ies)|again|closer|look\w*|moment|final|valid|redo\w*|actual|real|instead"
    r"|rather|different|others?|same|replac\w+|chang\w+|matters?|everything|hereby|holds?|if|might|should"
    r"|(?:would|could) (?:be|have been) (?:more|better|fair\w*|right|enough|closer|appropriate)"
    r"|it was|one|two|that(?=['’]s| (?:is|was|said)\b|\W*$))\b|(?:with|of|to|than) that\b"
    r"|^\W*(?:that|no|not|nothing|use|now|or)\b(?! factual| mention| in the)"
    r"|(?<![\d.,])(?:\d|10)(?![\d.,]*\d)",
    re.IGNORECASE,
)
"""Words of a sentence that may be about the verdict, or about another response."""
_SUBJECT = re.compile(
    r"(?:the|its|an?) (?!first|last|second)\w{4,} (?:is|are|has|does|gives|says|needs)\b", re.IGNORECASE
)
_ENGLISH = re.compile(r"\b(?:the|is|are|was|were|and|of|an?|for|no|but|with|in)\b", re.IGNORECASE)


def _is_remark(sentence: str, topic: set[str]) -> bool:
    """Whether an English sentence speaks of what was judged, and of nothing else, as far as words tell."""
    words = re.findall(r"[^\W\d_]+", sentence.casefold())
    known = len(_CONTENT.findall(sentence))
    is_english = sentence.replace("’", "").isascii() and (known > 1 or _ENGLISH.search(sentence))
    is_on_topic = len(words) >= 4 and (known or _SUBJECT.match(sentence) or not topic.isdisjoint(words))
    return bool(is_english and is_on_topic and not _DOUBTFUL.search(sentence))


def topic_of(*texts: str) -> set[str]:
    """The words that tell what a text is about: those of five letters or more."""
    return {word for text in texts for word in re.findall(r"[^\W\d_]{5,30}", text.casefold())} - _SPEECH


_SPEECH = {
    "response",
    "answer",
    "score",
    "verdict",
    "question",
    "rubric",
    "reason",
    "which",
    "there",
    "their",
    "would",
}


def check_sequel(after: str, key: str, value: object, topic: set[str]) -> None:
    """The words behind the object: they may speak of the response, and of the verdict only to confirm it."""
    if re.match(r"`{0,6}[ \t]{0,9}[,;)]?[ \t]{0,9}[a-z]", after):
        raise UnreadableVerdict("the verdict is part of a sentence")
    after = after.strip()
    if len(after) > MAX_SEQUEL:
        raise UnreadableVerdict(f"{len(after):,} characters follow the verdict; they may take it back")
    is_explained = False
    after = _CODE.sub("", re.sub(r"^[-–—]\s", "reason: ", after))
    for part in filter(str.strip, _SENTENCE_END.split(_MARKUP.sub(_bullet, after))):
        sentence, is_item = _ITEM.subn("", part)
        rest = _statement(key).sub("", _CONFIRMS.sub("the response", sentence))
        point = " ".join(rest.split()).strip(" -–—•.!,;:")
        is_explained = _EXPLANATION.fullmatch(point) is not None or (is_explained and is_item > 0)
        if _ABOUT_THE_RESPONSE_IN_CHINESE.fullmatch(point) or _ABOUT_THE_RESPONSE_ABROAD.fullmatch(point):
            continue
        is_about_response = is_explained or _ABOUT_THE_RESPONSE.fullmatch(point) or _is_remark(point, topic)
        is_about_verdict = _ABOUT_THE_VERDICT.search(rest)
        if not is_about_response or is_about_verdict or _is_contrary(sentence, rest, key, value):
            raise UnreadableVerdict(f"what follows the verdict may take it back: {sentence.strip()[:40]!r}")


def _bullet(mark: re.Match[str]) -> str:
    """An asterisk that begins a point of a list stays visible."""
    around = mark.string[max(mark.start() - 1, 0) : mark.end() + 1]
    return "•" if around == "\n* " else ""


def _is_contrary(sentence: str, rest: str, key: str, value: object) -> bool:
    """Whether a sentence has another value than the verdict."""
    limit = _limit(value)
    amounts = [one or two for one, two in _AMOUNT.findall(_BRACED.sub("", _CONFIRMS.sub("", sentence)))]
    if any(abs(float(amount)) <= limit and not is_same(amount, value) for amount in amounts):
        return True
    if isinstance(value, str):
        better, worse = ("first", "second") if value == "first" else ("second", "first")
        opposite = rf"\b{worse}\b.{{0,30}}\b(?:{_BETTER})\b|\b{better}\b.{{0,30}}\b(?:worse|weaker|wrong)\b"
        return value in ("first", "second") and re.search(opposite, rest, re.IGNORECASE) is not None
    if value is True:
        opposite = rf"\b(?:false|not {re.escape(key)})\b|{_UNMET}" + rf"|{_UNEQUAL}" * (key == "equivalent")
        return re.search(opposite, rest, re.IGNORECASE) is not None
    if value is False:
        is_equal = key == "equivalent" and not _CONTRAST.search(rest) and _EQUAL.search(rest)
        return bool(is_equal) or re.search(r"\btrue\b", rest, re.IGNORECASE) is not None
    return False


_BETTER = r"better|best|stronger|superior|preferable|preferred|wins"
_UNMET = r"\b(?:not|never|fails?)\b.{0,30}\b(?:met|meets?|criteri\w+)\b|n['’]t\b.{0,30}\bmeet\b"
_UNEQUAL = (
    r"\b(?:wrong|incorrect|different|differs?|disagrees?|mismatch\w*|contradicts?)\b"
    r"|\b(?:not|n['’]t) (?:match|agree|correct|right|the same)\b"
)
_EQUAL = re.compile(
    r"\b(?:is|are) (?:\w+ly )?(?:correct|right|equivalent)\b|\bmatch(?:es)?\b|\bagrees?\b|\bsame\b", re.I
)
_CONTRAST = re.compile(r"\b(?:not|but|however|though|although|except|only|while|no)\b|n['’]t\b", re.I)


def _limit(value: object) -> float:
    """Up to which a number beside this value looks like a score; none does beside what is no number."""
    try:
        return max(10.0, abs(float(value))) if isinstance(value, (int, float, str)) else -1.0
    except ValueError:
        return -1.0


@lru_cache(maxsize=256)
def _statement(key: str) -> re.Pattern[str]:
    """A line that states the value of the key."""
    noun = SCORE_NOUN if key == "score" else re.escape(key)
    return re.compile(
        r"^(?:[^\w\n]|_){0,8}+(?:(?:my|the|final|overall|total|actual|revised|updated|correct|new)\s){0,3}"
        rf"{noun}(?:[\s*_]{{0,4}}\([^()\n]{{1,30}}\))?+(?:[^\w(\n]|_){{1,6}}(?:(?:is|of)\s)?"
        r"(-?\d+(?:\.\d+)?|true|false|first|second|tie)\b(?:\s?(?:/|out of)\s?\d+)?",
        re.IGNORECASE | re.MULTILINE,
    )


_SCORE_BESIDE_LIST = re.compile(r'score[\W_]{1,6}-?\d|"score', re.IGNORECASE)


def check_statements(prose: str, key: str, value: object, scale: tuple[float, float] | None) -> None:
    """What the prose says the value is must be the value."""
    if isinstance(value, list):
        if _SCORE_BESIDE_LIST.search(prose):
            raise UnreadableVerdict("the prose around the verdicts states a score, too")
        return
    lines = (_stated(line, key, scale) for line in islice(_line(key).finditer(prose), MAX_LINES))
    for other in (*_statement(key).findall(prose), *filter(None, lines)):
        if not is_same(other, value):
            raise UnreadableVerdict(f"the prose says {other[:12]}, the verdict {str(value)[:12]}")


def is_same(claim: str, value: object) -> bool:
    """Whether a claim and a value mean the same."""
    match value:
        case [one] | {"value": one}:
            value = one
    meant = str(value).strip()
    one, two = said(claim.rstrip(".,")), said(meant)
    return one.value == two.value if one and two else claim.casefold() == meant.casefold()


# --- a verdict in words -------------------------------------------------------------------------------------

_LABEL = (
    rf"(?:(?:my|the|final|overall|total)[ ]){{0,2}}{SCORE_NOUN}"
    r"(?: (?:for|of) (?:the|this) (?:response|answer))?"
    r"|(?:最终|综合|总)?(?:评分|得分|分数|打分)|점수|スコア|点数|評価|(?:gesamt)?(?:bewertung|punktzahl)|оценка"
    r"|(?:puntuación|puntaje|calificación|pontuação|punteggio)(?: final| total| finale)?"
    r"|(?P<grade>note(?: finale| globale)?|nota(?: final| total)?|gesamtnote|voto)"
)
"""`grade` is a word that also means a remark, or counts down from 1."""
_SPACE = r"[ \t*_]{0,6}"
_EDGE = r"[^\w\n<>()\[\]{}\"'`“”‘’$\\★☆/~|.]{0,12}+"
"""What may stand before a statement: bullets, arrows, emoji, but no quotation mark."""
_TRUTH = r"(?:true|false|yes|no|first|second|tie)\b"


@lru_cache(maxsize=256)
def _line(key: str) -> re.Pattern[str]:
    """A line, or the end of one, that states the value of the key, and nothing else."""
    name = re.escape(key)
    label = _LABEL if key == "score" else rf"(?:(?:my|the|final)[ ]){{0,2}}{name}(?P<grade>(?!))?"
    value = rf"(?=[-\[(\\$★⭐☆✩]|{NUMBER}|{_TRUTH})[^\n<>]{{1,60}}?"
    return re.compile(
        rf"(?:^(?:(?!<{name}>){_TAG})?{_EDGE}|(?<=[.!?] ))"
        rf"(?:<{name}>\s{{0,4}}(?P<tagged>{value})\s{{0,4}}</{name}>"
        rf"|(?:(?P<label>{label}){_SPACE}"
        rf"(?:\({_SPACE}(?P<low>{NUMBER})\s?(?:-|–|to)\s?(?P<high>{NUMBER}){_SPACE}\))?{_SPACE}"
        rf"(?:[:=]|(?=\n))[\s*_]{{0,8}})?"
        rf"(?P<value>{value}))(?:[ \t*_.。!]{{0,8}}(?:{_TAG})?+$|(?P<more>[*_]{{0,3}}\s?(?=[-–—]\s)))",
        re.IGNORECASE | re.MULTILINE,
    )


_CRITERION = re.compile(
    rf"^[ \t*_#•\d.-]{{0,12}}(?!(?:\w+ ){{0,2}}{SCORE_NOUN}\b)[A-Za-z][\w ()&/-]{{0,40}}[*_]{{0,3}}:"
    rf"{_SPACE}{NUMBER}\s?(?:/|out of)\s?\d+[ \t*_.]{{0,6}}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that scores one criterion, beside the score of the whole."""
_GIVEN = re.compile(
    r"\b(?:scores?|ratings?|rate|grades?|gives?|award|assign|deserves?|earns?|merits?|worth)\b"
    rf"[^.!?\n\d]{{0,40}}(?<![\w.])(?<!out of )({NUMBER})(?![\w%°]|\.\d|\s?[%°/]|\sout of)"
    rf"|(?<![\w.,])({NUMBER})\s?(?:/|out of)\s?({NUMBER})",
    re.IGNORECASE,
)
"""A number in prose that somebody gave."""
_FENCE_LINE = re.compile(r"^[ \t]{0,9}`{3,6}(?:ya?ml|text|markdown|md)?[ \t]{0,9}$", re.MULTILINE)


def line_places(text: str, key: str, scale: tuple[float, float] | None) -> list[FoundAt]:
    """Where a line states the value of the key, on the scale that was asked for, and nothing else.

    Raises:
        UnreadableVerdict: the words beside it may mean another.
    """
    text = _FENCE_LINE.sub(lambda fence: " " * len(fence[0]), text)
    stated: list[tuple[str, int, int]] = []
    for line in islice(_line(key).finditer(text), MAX_LINES):
        value = _stated(line, key, scale)
        is_code = "`" in line[0] or text.count("```", 0, line.start()) % 2
        if value and not is_code:
            stated.append((value, *line.span()))
    if not stated or len(stated) == MAX_LINES:
        return []
    value = stated[0][0]
    rest, end = [], 0
    for other, *place in stated:
        if not is_same(other, value):
            raise UnreadableVerdict(f"the reply states two different values of {key!r}")
        rest.append(text[end : place[0]])
        end = place[1]
    prose = _CRITERION.sub("", "\n".join((*rest, text[end:])))
    given = set(_GIVEN.findall(prose))
    if len(given) > MAX_LINES:
        raise UnreadableVerdict("beside the verdict there are too many numbers to be sure of it")
    limit, tops = _limit(value), (None, scale[1] if scale else None)
    for number in filter(None, (said(one or f"{two}/{of}") for one, two, of in given)):
        if number.of in tops and abs(number.value) <= limit and not is_same(f"{number.value:g}", value):
            raise UnreadableVerdict(f"the reply states {number.value:g} and {value}")
    found = {key: value, "reason": " ".join(_MARKUP.sub("", prose).split())}
    return [FoundAt(found, *place) for _, *place in stated]


def _stated(line: re.Match[str], key: str, scale: tuple[float, float] | None) -> str:
    """The value that a line states; none where it is on another scale, or may be no value of the key's."""
    text = (line["tagged"] or line["value"]).replace("*", "")
    number = said(text)
    is_whole_line = line.start() == 0 or line.string[line.start() - 1] == "\n"
    if number is None:
        is_word = key != "score" and re.fullmatch(_TRUTH, text, re.IGNORECASE)
        return text if is_word and is_whole_line and (line["label"] or line["tagged"]) else ""
    is_bound = not is_whole_line or line["more"] is not None  # to other words of its line
    if is_bound and not (line["label"] and (is_whole_line or number.is_marked)):
        return ""
    ends = [None if line[name] is None else said(line[name]) for name in ("low", "high")]
    low, high = (end.value if end else None for end in ends)
    has_scale = scale and (low, high, number.of) in {
        (*scale, None),
        (*scale, scale[1]),
        (None, None, scale[1]),
    }
    is_bare = low is None and number.of is None and line["grade"] is None
    before = line.string[: line.start()].rstrip()
    is_led_to = line["label"] or line["tagged"] or (number.is_marked and _ASKS.search(before[-200:]))
    return f"{number.value:g}" if has_scale or (is_bare and is_led_to) else ""


_ASKS = re.compile(rf"\b{SCORE_NOUN}\b[^.!?\n]{{0,80}}:$", re.IGNORECASE)
"""Words that lead up to a score."""
