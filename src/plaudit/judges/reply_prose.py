"""The words of a reply around its verdict, and the verdict in words: a line that states the score.

No list of phrases holds all the ways to quote a verdict or to take it back. So it is the other way round:
what leads up to it must make it the judge's own, and each sentence that follows must be about the response.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from plaudit.errors import UnreadableVerdict
from plaudit.judges.reply_objects import FoundAt

MAX_CLAUSE = 300
"""Characters of the clause that may lead up to a verdict."""
MAX_LINES = 100
"""Lines with a score of which one is looked for; a verdict has one, a table has none."""
MAX_SEQUEL = 4_000
"""Characters of explanation that may follow a verdict."""

SCORE_NOUN = r"(?:score|rating|grade)"
_NOUN = (
    r"(?:verdict|evaluation|judge?ment|assessment|score|rating|grade|results?|output|json(?: \w{1,20})?"
    r"|object|decision|conclusion|reply|my response|(?:final |my )?answer(?! (?!is$)\w)|feedback|analysis"
    r"|summary)"
)
_OWN_ABROAD = (
    r"(?:(?:voici|hier ist|aquí (?:está|tienes)|ecco|aqui está|вот|m[oae]n?|meine?|mia?|minha|мо[яй]|l[ae]"
    r"|die|das|el|il)[ ]|l['’]){0,3}(?:évaluation|bewertung|urteil|ergebnis|evaluación|veredicto|resultado"
    r"|avaliação|valutazione|оценка|вердикт)(?: (?:demandée|finale?))?"
    r"|(?:以下是|这是|我的|最终的?|综合|对(?:该|此)?(?:回答|回复)的|根据[^，,:：]{0,30}[，,]?){0,4}"
    r"(?:评价|评分|评估|结果|判断|裁决|評価|判定|평가|결과)(?:结果|如下|为|是|です){0,2}"
)
_OWN = re.compile(
    r"(?:(?:so|thus|therefore|hence|and|now|finally|then|okay|ok|sure|certainly|overall|in|i"
    r"|as requested|to summari[sz]e)\b[ ,!]?)*"
    r"(?:here(?:['’]s| is| are| comes| you (?:are|go))\b.{0,99}|(?:this|below|the following) is\b.{0,99}"
    r"|(?:(?:would|will|can|hereby|have) )*(?:rate|score|assign|give|judge|conclude|award|evaluated?|grade"
    r"|return|reply|respond|provide|submit|issue|find)\b.{0,60}"
    r"|(?:evaluat|compar|assess|judg|scor|review|grad)ing (?:the|this|both|each)(?: \w{1,20}){1,2}"
    r"|(?:(?:my|the|our|own|final|overall|requested|json|structured|official|resulting|evaluation) ){0,3}"
    rf"{_NOUN}"
    r"(?: (?:of|for|on|about|to|in|as|with|by|from|based on|according to)\b.{0,80})?"
    r"(?: (?:is|are|reads|follows|is as follows|below|would be|object|json))?"
    r"|the response (?:receives|gets|earns|is assigned|scores) (?:the following \w{1,20}|as follows)"
    r"|let me (?:write|give|output|provide|state)\b.{0,40}|response(?: evaluation| assessment)?|judge"
    r"|assistant"
    rf"|{_OWN_ABROAD})?",
    re.IGNORECASE,
)
_OF_THE_RESPONSE = re.compile(
    r"^(?:response|answer)$|^response (?=evaluation|assessment)|\bmy response\b"
    r"|^the response (?:receives|gets|earns|is assigned|scores)|\b(?:rate|score|give|judge|grade) it$"
    r"|\b(?:of|for|on|about|to|rate|evaluated?|judged?|scored?|assess(?:ed)?|reviewed|grade|give|award"
    r"|(?:evaluat|compar|assess|judg|scor|review|grad)ing)"
    r" (?:the|this|that|each|both) (?:\w{1,20} )?(?:responses?|answers?|submission|candidate)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:responses?|answers?(?<!final answer)(?<!my answer)|author|student|user|candidate|model|text"
    r"|submission|writer|data|it|its|he|she|they|their|\w+self|themselves)\b",
    re.IGNORECASE,
)
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
    r"(?<!e\.g)[.!?。！？)\"”`-][*_ ]*$|[:/][*_ ]*\d+(?:\.\d+)?[*_ ]*$|^\s*(?:[-*•|]|\d+[.)])\s"
    r"|\b(?:correct|right|wrong|incorrect|accurate|complete|brief|met|missing)$",
    re.IGNORECASE,
)
"""A line that leads up to nothing: a sentence, a value, an item of a list or a row of a table."""
_CONTROL = r"<[|｜][\w▁]{1,40}[|｜]>(?:[\w.:-]{1,60}(?=<[|｜]))?"
_TAG = rf"(?:</?[\w:-]{{1,40}}>|{_CONTROL}|\[/?(?:INST|THINK|TOOL_\w{{1,16}})\])"
"""Markup, and the name of a function between two control tokens."""
_MARKUP_TAG = re.compile(_TAG)
_FENCE_OPENED = re.compile(r"(?:^|\n)[ \t]{0,9}(?:`{3,6}|~{3,6})\w{0,10}[ \t]{0,9}\n?$")


def check_introduction(before: str) -> None:
    """The words that lead up to the object, if there are any: they must make it the judge's own."""
    text = _MARKUP_TAG.sub("", _FENCE_OPENED.sub("\n", before)).rstrip(" \t`[{*_")
    line = text.rstrip().rsplit("\n", 1)[-1].strip(" \t*_#")
    if line.startswith(">"):
        raise UnreadableVerdict("the verdict stands inside a quotation")
    if not line or (text.endswith("\n") and _COMPLETE.search(text.rstrip().rsplit("\n", 1)[-1])):
        return
    sentence = re.split(r"[.!?。！？]\s|\bbut\b", line)[-1].strip(" :：*_")
    clause = re.split(r"[,;:，；]\s?|\s[-–—]\s", sentence)[-1].strip(" *_`")
    is_short = len(clause) <= MAX_CLAUSE
    is_own = is_short and _OWN.fullmatch(clause) and not _OTHERS.search(_OF_THE_RESPONSE.sub("", clause))
    if not is_own or _HYPOTHETICAL.search(sentence):
        raise UnreadableVerdict("the words before the verdict do not make it the judge's own")


_ABOUT_THE_VERDICT = re.compile(
    r"\b(?:i(?!\.e)|me|my|mine|myself|we|us|our|you|your|scor(?:e|es|ed|ing)|verdicts?|grad(?:e|es|ed|ing)"
    r"|ratings?|json|object|format|above|previous\w*|earlier|premature|edit|correction|corrected|updat\w+"
    r"|revis\w+|actually|in (?:truth|fact|reality)"
    r"|wait|hm+|oops|hold on|sorry|apolog\w+|please|ignor\w+|disregard\w*|discard\w*|strike"
    r"|scratch|withdraw\w*|retract\w*|amend\w*|re-?(?:consider|read|check|evaluat|assess|think|scor)\w*"
    r"|examples?|samples?|hypothetical\w*|otherwise|quot\w+|forged|fake\w*|inject\w*|manipulat\w+|after all"
    r"|hindsight|reflection|second thoughts?|too (?:high|low|generous|harsh|lenient|strict|kind)|no longer"
    r"|never ?mind|on balance|fairer|hasty|backwards|wrong way|swapped|mixed up|taken? back"
    r"|deserv\w+|worth\w*|less|(?:better|worse|more) than (?:that|this|it)|meant|number|output"
    r"|fails?(?! to)|half|zero|three|four|five|six|seven|eight|nine|ten|wrong (?:response|answer) was"
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
    r"|\b(?:a|one) point (?:was|is) (?:deducted|lost|off|subtracted)\b"
    r"|^\W*(?:(?:final )?(?:verdict|score|evaluation)|done|that is all|thank you|thanks|end of \w+)\W*$"
    r"|\b(?:the|this|my) (?:score|verdict|rating) (?:reflects|is based on|accounts for)\b",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"(?:explanation|justification|reason(?:ing)?|rationale|strengths?|weakness(?:es)?|pros|cons|summary|analysis"
    r"|correctness|accuracy|clarity|brevity|completeness|style|comments?|details?|step \d+)(?:\s?:.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_THE_RESPONSE = re.compile(
    r"(?:(?:note(?: that|\s?:)\s?)?(?:(?:in short|in summary|however|but|also|additionally|moreover"
    r"|furthermore|still|overall|thus|therefore"
    r"|so|and),? )?(?:(?:the|this|its|both) (?:\w{1,20} )?(?:responses?|answers?|solutions?|explanations?"
    r"|texts?|author|candidate|student|code|reasoning|arguments?|values?|units?|statements?|proof|essay|story"
    r"|reference|claims?|first|second|two|paragraphs?|sentences?|steps?|point|method|conclusion|wording|tone)"
    r"|both|an? (?:\w{1,20} ){0,2}(?:response|answer|solution|essay)|it (?!was\b)(?:\w+s|does))\b.*)?",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_THE_RESPONSE_IN_CHINESE = re.compile(
    r"(?:(?:满分(?:为|是)?\s?\d+\s?分|(?:该|此|这个)?(?:回答|答案|回复)[^我分应误更修重打抱等其0-9]{1,80})[。，,；]?\s?)+"
)
_MARKUP = re.compile(rf"{_TAG}|~{{3,6}}|[`*_#>]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s(?![a-z]|\d+\.\d)|\n")
_BRACED = re.compile(r"\{[^{}]{0,80}\}")
_AMOUNT = re.compile(
    r"\b(?:deserves?|worth|warrants?|merits?|earns?)\b[^\d]{0,20}?(-?\d+(?:\.\d+)?)\b"
    r"|(?<!answer is )(?<!solution is )(?<!step )(?<!out of )(?<![\w./])"
    r"(-?\d+(?:\.\d+)?)(?!\d|\.\d|\s?[a-z%°])",
    re.IGNORECASE,
)
"""A number that may be a score: it has no unit, and is not what the task's answer is."""


def check_sequel(after: str, key: str, value: object) -> None:
    """The words behind the object: they may speak of the response, and of the verdict only to confirm it."""
    if re.match(r"`{0,6}[ \t]{0,9}[,;)]?[ \t]{0,9}[a-z]", after):
        raise UnreadableVerdict("the verdict is part of a sentence")
    after = after.strip()
    if len(after) > MAX_SEQUEL:
        raise UnreadableVerdict(f"{len(after):,} characters follow the verdict; they may take it back")
    is_explained = False
    for sentence in filter(str.strip, _SENTENCE_END.split(_MARKUP.sub(_bullet, after))):
        rest = _statement(key).sub("", _CONFIRMS.sub("the response", sentence))
        point = " ".join(rest.split()).strip(" -•.!,;:")
        is_explained = _EXPLANATION.fullmatch(point) is not None or (
            is_explained and sentence.lstrip().startswith(("•", "-"))
        )
        if _ABOUT_THE_RESPONSE_IN_CHINESE.fullmatch(point):
            continue
        is_about_response = is_explained or _ABOUT_THE_RESPONSE.fullmatch(point)
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
    if value is not True and value is not False:
        return False
    unmet = r"\b(?:not|never|fails?)\b.{0,30}\b(?:met|meets?|criteri\w+)\b|n['’]t\b.{0,30}\bmeet\b"
    opposite = rf"\b(?:false|not {re.escape(key)})\b|{unmet}" if value else r"\btrue\b"
    return re.search(opposite, rest, re.IGNORECASE) is not None


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


def check_statements(prose: str, key: str, value: object) -> None:
    """What the prose says the value is must be the value."""
    if isinstance(value, list):
        if _SCORE_BESIDE_LIST.search(prose):
            raise UnreadableVerdict("the prose around the verdicts states a score, too")
        return
    for other in _statement(key).findall(prose):
        if not is_same(other, value):
            raise UnreadableVerdict(f"the prose says {other[:12]}, the verdict {str(value)[:12]}")


def is_same(said: str, value: object) -> bool:
    """Whether the prose and the object mean the same value."""
    meant = str(value).strip().casefold()
    try:
        return said.casefold() == meant or float(said) == float(meant)
    except ValueError:
        return False


# --- a verdict in words -------------------------------------------------------------------------------------

_NUMBER = r"-?\d{1,9}(?:\.\d{1,9})?"
_LABEL = (
    rf"(?:(?:my|the|final|overall|total)[ ]){{0,2}}{SCORE_NOUN}"
    r"|(?:最终|综合|总)?(?:评分|得分|分数|打分)|점수|スコア|点数|評価|puntuación|puntaje|calificación|pontuação"
    r"|(?:gesamt)?(?:bewertung|punktzahl)|punteggio|оценка"
    r"|(?P<grade>note(?: finale| globale)?|nota(?: final)?|gesamtnote|voto)"
)
"""`grade` is a word that also means a remark, or counts down from 1."""
_SPACE = r"[ \t*_]{0,6}"


@lru_cache(maxsize=256)
def _line(key: str) -> re.Pattern[str]:
    """A line that states the value of the key, and nothing else."""
    name = re.escape(key)
    label = _LABEL if key == "score" else rf"(?:(?:my|the|final)[ ]){{0,2}}{name}(?P<grade>(?!))?"
    value = _NUMBER if key == "score" else rf"(?:{_NUMBER}|true|false|yes|no|first|second|tie)"
    return re.compile(
        rf"^(?:(?!<{name}>){_TAG})?[ \t*_#•-]{{0,12}}"
        rf"(?:<{name}>\s{{0,4}}(?P<tagged>{value})\s{{0,4}}</{name}>"
        rf"|(?:(?P<label>{label}){_SPACE}"
        rf"(?:\({_SPACE}(?P<low>{_NUMBER})\s?(?:-|–|to)\s?(?P<high>{_NUMBER}){_SPACE}\))?{_SPACE}"
        rf"(?:[:=：]|(?=\n))[\s*_]{{0,8}})?"
        rf"(?P<value>{value})(?:\s?(?:/|out of)\s?(?P<of>{_NUMBER}))?)[ \t*_.。!]{{0,8}}(?:{_TAG})?+$",
        re.IGNORECASE | re.MULTILINE,
    )


_CRITERION = re.compile(
    rf"^[ \t*_#•\d.-]{{0,12}}(?!(?:\w+ ){{0,2}}{SCORE_NOUN}\b)[A-Za-z][\w ()&/-]{{0,40}}[*_]{{0,3}}:"
    rf"{_SPACE}{_NUMBER}\s?(?:/|out of)\s?\d+[ \t*_.]{{0,6}}$",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that scores one criterion, beside the score of the whole."""
_GIVEN = re.compile(
    r"\b(?:scores?|ratings?|rate|grades?|gives?|award|assign|deserves?|earns?|merits?|worth)\b"
    rf"[^.!?\n\d]{{0,40}}(?<![\w.])({_NUMBER})\b(?!\.\d|\s?[%°])|({_NUMBER})\s?(?:/|out of)\s?\d",
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
    stated = []
    for line in islice(_line(key).finditer(text), MAX_LINES):
        low, high, of = (None if line[name] is None else float(line[name]) for name in ("low", "high", "of"))
        has_scale = scale and (low, high, of) in {(*scale, None), (*scale, scale[1]), (None, None, scale[1])}
        is_bare = low is None and of is None and line["grade"] is None
        if has_scale or (is_bare and (line["label"] or line["tagged"])):
            stated.append((line["tagged"] or line["value"], *line.span()))
    if not stated or len(stated) == MAX_LINES or "`" in text:
        return []
    value = stated[0][0]
    rest, end = [], 0
    for other, *place in stated:
        if not is_same(other, value):
            raise UnreadableVerdict(f"the reply states two different values of {key!r}")
        rest.append(text[end : place[0]])
        end = place[1]
    prose = _CRITERION.sub("", "\n".join((*rest, text[end:])))
    for one, two in _GIVEN.findall(prose):
        if not is_same(one or two, value):
            raise UnreadableVerdict(f"the reply states {one or two} and {value}")
    found = {key: value, "reason": " ".join(_MARKUP.sub("", prose).split())}
    return [FoundAt(found, *place) for _, *place in stated]
