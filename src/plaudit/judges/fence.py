"""The fence around everything that is judged: blocks whose tags carry a code the content cannot contain.

The code is derived, never drawn: a hash of the judge's version and of the contents up to and including the
block. So the same sample renders to the same bytes (and the cache finds it), the samples of one group share
every byte up to the response (and the endpoint's prompt cache finds that), and no text can contain a tag that
closes a block without changing the code that would close it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import repeat

from plaudit.judges.clean import CUT, TURN, clean, is_plain
from plaudit.judges.transcript import Transcript, cut_turns, transcript, without_marks
from plaudit.rows import text_of
from plaudit.types import Message, Sample

MAX_CHARS = 200_000
"""Characters shown of one block unless a judge says otherwise: about 50,000 tokens."""

Content = str | Sequence[Message]


def fence(
    contents: Mapping[str, Content],
    *,
    salt: bytes,
    max_chars: int = MAX_CHARS,
    notes: Mapping[str, str] | None = None,
) -> str:
    """Each content in its own block, under its label, in order.

        <response-KFAGBCOPLMHA note="14 invisible characters removed">
        ...
        </response-KFAGBCOPLMHA>

    The opening tag says what was done to the content, after what `notes` has to say of it. A content longer
    than `max_chars` keeps its head and its tail, around a tag with the code. Labels and notes are the
    judge's own words.
    """
    blocks, everything = _shown(contents, max_chars)
    digest = sha256(salt)
    fenced = []
    for (label, content), (text, note) in zip(contents.items(), blocks, strict=True):
        digest.update(text.encode())
        code = digest.digest()[:_CODE_LENGTH].translate(_LETTERS).decode()
        while code in everything:
            digest.update(b"again")
            code = digest.digest()[:_CODE_LENGTH].translate(_LETTERS).decode()
        attribute = ""
        if note or notes or type(content) is not str:  # else it has no turns, and nothing was cut
            for mark, tag in ((TURN, "turn"), (CUT, "cut")):
                text = text.replace(mark, f"<{tag}-{code} ")  # noqa: PLW2901
            said = [one for one in ((notes or {}).get(label), note) if one]
            if isinstance(content, Transcript):
                said.insert(0, f"each turn begins with a tag turn-{code}, and with nothing else")
            attribute = f' note="{"; ".join(said)}"' if said else ""
        fenced.append(f"<{label}-{code}{attribute}>\n{text}\n</{label}-{code}>")
    return "\n\n".join(fenced)


def shown(label: str, content: Content, max_chars: int = MAX_CHARS) -> tuple[str, str]:
    """What a judge sees of a content, and the note that says what was done to it.

    Contents that are shown alike are the same to every judge. Turns and cuts are opened by marks that no
    content can hold, and that become tags with a code once the code is known.
    """
    if not isinstance(content, str) and (turns := transcript(label, content)):
        alone = f"{TURN}user>\n"
        is_one_turn = turns.startswith(alone) and TURN not in turns[1:]
        content = turns[len(alone) :] if is_one_turn else turns
    left_out, missing = "", 0
    if isinstance(content, Transcript):
        text, left_out = cut_turns(content, max_chars)
    else:
        text = without_marks(content) if isinstance(content, str) else ""
        missing = len(text) - max_chars
    if missing > 0:
        head = (max_chars + 1) // 2
        tail = len(text) - (max_chars - head)
        text = f"{text[:head]}\n{CUT}{missing:,} characters left out>\n{text[tail:]}"
    text, tokens, invisible = clean(text)
    return text, "; ".join(filter(None, (left_out, _note(missing, tokens, invisible))))


def is_cut(sample: Sample, max_chars: int = MAX_CHARS) -> bool:
    """Whether a judge that shows so many characters of each content leaves some of this sample out."""
    said = sample.prompt
    prompt = said if isinstance(said, str) else "".join(text_of(turn.get("content")) for turn in said)
    return max(len(prompt), len(sample.text), len(sample.reference or "")) > max_chars


# Letters alone: no digit of a code can be taken for a score. Capitals: rare in prose, so looking for the
# code in the contents costs next to nothing.
_LETTERS = bytes(ord("A") + byte % 26 for byte in range(256))
_CODE_LENGTH = 12


def _shown(contents: Mapping[str, Content], max_chars: int) -> tuple[list[tuple[str, str]], str]:
    """Text and note of each content, and all texts; most are plain, as one look at all of them tells."""
    texts = [content for content in contents.values() if type(content) is str]
    if len(texts) == len(contents):
        everything = "\n".join(texts)
        if len(everything) <= max_chars and is_plain(everything):
            return list(zip(texts, repeat(""))), everything
    blocks = [shown(label, content, max_chars) for label, content in contents.items()]
    return blocks, "\n".join([text for text, _ in blocks])


def _note(missing: int, tokens: int, invisible: int) -> str:
    notes = (
        (missing, "character", "left out of the middle"),
        (tokens, "control token", "rewritten with ‹ ›"),
        (invisible, "invisible character", "removed"),
    )
    return "; ".join(f"{n:,} {what}{'s' * (n > 1)} {done}" for n, what, done in notes if n > 0)
