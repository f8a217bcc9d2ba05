"""A journal as a file: whole, torn, damaged, foreign, shared, bounded."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journals import judged, read, write
from msgspec import structs
from until import until

from plaudit.errors import JournalError
from plaudit.journal.blocks import (
    ACTIVITY,
    HEAD_SIZE,
    SESSION,
    VERDICTS,
    VerdictBlock,
    block,
    read_head,
    unpacked,
)
from plaudit.journal.index import JournalIndex
from plaudit.journal.segments import TITLE, Appender, Located, Segment, segments_of
from plaudit.journal.writer import JournalWriter
from plaudit.judges.rubric import Rubric
from plaudit.types import ChatRequest, Message, Usage


def scores(path: Path) -> list[object]:
    return [record["score"] for record in read(path)]


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    write(tmp_path / "j", [judged(n, score=float(n)) for n in range(1300)])
    assert scores(tmp_path / "j") == [float(n) for n in range(1300)]
    assert read(tmp_path / "j")[1299]["response"] == "answer 1299"


def test_what_is_stored_as_a_reference_is_whole_again(tmp_path: Path) -> None:
    prompt, response = "a long question " * 9, "a long answer " * 9
    one = judged(prompt=prompt, response=response)
    reason = "a reason of more than forty characters, as judges give them"
    content = f"before {prompt} between {response} after"
    exchange = structs.replace(one.exchanges[0], reply=f'{{"reason": "{reason}"}}')
    system: Message = {"role": "system", "content": "judge " * 9}
    one = structs.replace(
        one,
        verdict=replace(one.verdict, reason=reason),
        request=ChatRequest((system, {"role": "user", "content": content})),
        exchanges=(exchange, exchange),
    )
    turns = ({"role": "user", "content": "a turn of a conversation " * 3},)
    write(tmp_path / "j", [one, one, judged(prompt=turns)])
    first, second, third = read(tmp_path / "j")
    assert {**first, "id": 0, "seq": 0, "time": 0} == {**second, "id": 0, "seq": 0, "time": 0}
    assert (first["prompt"], first["response"], first["reason"]) == (prompt, response, reason)
    assert first["request"][1] == {"role": "user", "content": content}  # type: ignore[index]
    assert [one["reply"] for one in first["exchanges"]] == [exchange.reply] * 2  # type: ignore[attr-defined]
    assert third["prompt"] == list(turns)


@pytest.mark.parametrize("missing", [b"", b"\0" * 200])
def test_a_journal_without_its_beginning_is_read_from_the_first_whole_block_on(
    tmp_path: Path, missing: bytes
) -> None:
    path = tmp_path / "journal"
    write(path, [judged(0)])
    write(path, [judged(1)])
    path.write_bytes(missing + path.read_bytes()[200:])
    with JournalIndex(path) as index:
        assert [record.text.response for record in index.records()][-1] == judged(1).sample.response
        assert len(index.damage) == 1 and "from byte 0 on" in index.damage[0]
    with pytest.raises(JournalError, match="not a journal"):
        JournalWriter(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JournalError, match="not a file"):
        JournalIndex(tmp_path / "pipe")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make links of other users")
def test_a_journal_that_is_another_users_link_is_refused(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "j"
    target.touch()
    link.symlink_to(target)
    os.lchown(link, 65534, 65534)
    with pytest.raises(JournalError, match="is a link that another user has made"):
        Appender(link, b"", max_bytes=1 << 20)
    assert target.read_bytes() == b""


def test_a_torn_tail_is_left_out_and_named_and_cut_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [judged(n) for n in range(600)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with JournalIndex(path) as index:
        assert len(index) == 512
        assert len(index.damage) == 1 and "torn" in index.damage[0]
    write(path, [judged(score=3.0)])
    with JournalIndex(path) as index:
        assert len(index) == 513 and index.record(512).facts["score"] == 3.0
        assert not index.damage


@pytest.mark.parametrize("cut", range(1, len(TITLE) + 60, 7))
def test_a_file_cut_anywhere_is_read_as_far_as_it_goes(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    write(path, [judged()])
    path.write_bytes(path.read_bytes()[:cut])
    with JournalIndex(path) as index:
        assert len(index) == 0
        assert len(index.damage) == (0 if cut == len(TITLE) else 1)


def test_damage_in_the_middle_costs_its_own_block_only(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for number in range(3):
        write(path, [judged(score=float(number))])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with JournalIndex(path) as index:
        found = [index.record(row).as_json() for row in range(len(index))]
        assert {0.0, 2.0} <= {record["score"] for record in found if record["response"]}
        assert index.damage


def test_a_journal_of_another_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(b"plaudit journal 002\n" + bytes(100))
    with pytest.raises(JournalError, match="002"):
        JournalIndex(tmp_path / "j")


@pytest.mark.parametrize("content", [b"%PDF-1.7 and so on and on and on", bytes(64)])
def test_another_file_is_no_journal_and_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(JournalError):
        JournalIndex(tmp_path / "j")
    with pytest.raises(JournalError):
        write(tmp_path / "j", [judged()])
    assert (tmp_path / "j").read_bytes() == content


def test_a_journal_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="--journal"):
        JournalIndex(tmp_path / "none")


def test_a_reader_sees_what_is_written_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [judged(score=1.0)])
    with JournalIndex(path) as index:
        write(path, [judged(score=2.0)])
        assert index.refresh() and len(index) == 2
        assert not index.refresh()


def test_it_stays_below_its_size_and_keeps_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "j"
    for number in range(30):
        noise = "".join(chr(33 + (n * n * 7 + number) % 90) for n in range(3000))
        write(path, [judged(number, score=float(number % 10), response=noise)], max_mb=0.016)
    files = segments_of(path)
    assert len(files) <= 8
    assert sum(file.stat().st_size for file in files) <= 0.016e6
    assert scores(path)[-1] == 9.0
    with JournalIndex(path) as index:
        assert not index.damage
        write(path, [judged(score=5.0)], max_mb=0.001)
        assert index.refresh()
        assert [one.facts["score"] for one in index.records()] == [5.0]  # as for who opens it now


def test_a_reader_leaves_out_what_was_dropped_and_keeps_no_file_of_it(tmp_path: Path) -> None:
    path = tmp_path / "j"

    def more(number: int) -> None:
        noise = "".join(chr(33 + (n * n * 7 + number) % 90) for n in range(3000))
        write(path, [judged(number, score=float(number % 10), response=noise)], max_mb=0.016)

    more(0)
    with JournalIndex(path, write_other(tmp_path / "other")) as index:
        for number in range(1, 30):
            more(number)
            index.refresh()
            found = [one.facts["score"] for one in index.records() if one.facts["run"] == "run-1"]
            assert found == scores(path)
            assert sum(index.is_whole(row) for row in range(len(index))) == len(index) == len(found) + 1
        if sys.platform == "linux":
            held = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]  # noqa: PTH115
            assert [name for name in held if name.startswith(str(path)) and "(deleted)" in name] == []


def write_other(path: Path) -> Path:
    write(path, [judged()], run="other")
    return path


def test_who_wrote_is_known_when_its_first_files_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "j"
    introduction = {"session": "s", "run": "long", "started": 1.0, "settings": {"rpm": 7}}
    appender = Appender(path, block(SESSION, msgspec.json.encode(introduction)), max_bytes=16_000)
    for number in range(20):
        one = VerdictBlock("s", "long", has_text=True)
        one.add([judged(number, response=random.Random(number).randbytes(2000).hex())])
        appender.append(one.encode())
    appender.close()
    with JournalIndex(path) as index:
        assert 0 < len(index) < 10
        assert [one.settings for one in index.sessions.values()] == [{"rpm": 7}]


def test_a_journal_that_is_removed_while_it_is_written_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "j"
    writer = JournalWriter(path, run="long")
    path.unlink()
    writer.add(judged())
    writer.close()
    with JournalIndex(path) as index:
        assert [one.run for one in index.sessions.values()] == ["long"] and len(index) == 1


def test_a_disk_that_is_full_for_a_while_costs_what_was_judged_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j"
    writer = JournalWriter(path, look=None)
    path.unlink()
    path.mkdir()  # it cannot be opened again
    writer.add(judged(0, response="x" * 20_000))
    until(lambda: writer.lost == 1)
    path.rmdir()
    writer.add(judged(1))
    writer.close()
    assert [record["response"] for record in read(path)] == ["answer 1"]
    assert "going on without it until it can" in caplog.text
    assert "the journal is written again; 1 verdicts are missing" in caplog.text


def test_two_writers_share_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "j"
    writers = [JournalWriter(path, run=name, max_mb=0.05) for name in ("a", "b")]
    for number in range(2000):
        writers[number % 2].add(judged(number))
    for writer in writers:
        writer.close()
    with JournalIndex(path) as index:
        assert not index.damage
        assert len(set(map(index.id_of, range(len(index))))) == len(index)


def test_texts_without_a_form_in_bytes_are_kept_as_well_as_can_be(tmp_path: Path) -> None:
    path = tmp_path / "j"
    odd = {"lone": "\ud800", "big": 2**70, "object": object(), 3: {"set"}}
    write(path, [judged(response="\ud800!", extra=odd), judged(1)])
    first, second = read(path)
    assert first["response"] == "?!" and first["extra"]["big"] == str(2**70)  # type: ignore[index]
    assert second["response"] == "answer 1"


def test_numbers_that_fit_no_column_are_kept_as_near_as_can_be(tmp_path: Path) -> None:
    path = tmp_path / "j"
    one = judged(extra={"gold": 10**400, "training_step": 2**80})
    usage = Usage(10**20, -5, 1e300)
    write(path, [structs.replace(one, verdict=replace(one.verdict, usage=usage)), judged(1)])
    first, second = read(path)
    assert (first["prompt_tokens"], first["completion_tokens"]) == (2**32 - 1, 0)
    assert (first["gold"], first["step"], first["response"]) == (None, None, "answer 0")
    assert second["prompt_tokens"] == 100


def test_a_number_that_is_none_costs_its_own_record_only(tmp_path: Path) -> None:
    one = judged(1)
    usage = Usage("many", 5)  # type: ignore[arg-type]
    bad = structs.replace(one, verdict=replace(one.verdict, usage=usage))
    writer = write(tmp_path / "j", [judged(0), bad, judged(2)])
    assert [record["response"] for record in read(tmp_path / "j")] == ["answer 0", "answer 2"]
    assert (writer.written, writer.lost) == (2, 1)


def test_a_judge_that_cannot_say_its_name_costs_its_own_records_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Nameless(Rubric):
        @property
        def version(self) -> str:
            raise RuntimeError("no version today")

    bad = structs.replace(judged(1), judge=Nameless("Is it?"))
    writer = write(tmp_path / "j", [judged(0), bad, judged(2)])
    assert [record["response"] for record in read(tmp_path / "j")] == ["answer 0", "answer 2"]
    assert (writer.written, writer.lost) == (2, 1)
    assert "no version today" in caplog.text


def test_a_value_that_cannot_even_be_described_costs_its_own_record_only(tmp_path: Path) -> None:
    class Unspeakable:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    bad = judged(1, extra={"before": "it", "thing": Unspeakable()})
    writer = write(tmp_path / "j", [judged(0), bad, judged(2)])
    assert [record["response"] for record in read(tmp_path / "j")] == ["answer 0", "answer 2"]
    assert (writer.written, writer.lost) == (2, 1)


def test_records_around_one_that_was_left_out_keep_names_of_their_own(tmp_path: Path) -> None:
    class Unspeakable:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    bad = judged(extra={"thing": Unspeakable()})
    writer = JournalWriter(tmp_path / "j")
    for start in range(0, 1200, 60):
        writer.add(*map(judged, range(start, start + 30)), bad, *map(judged, range(start + 30, start + 60)))
    writer.close()
    found = read(tmp_path / "j")
    assert [record["response"] for record in found] == [f"answer {n}" for n in range(1200)]
    assert len({record["id"] for record in found}) == 1200
    assert writer.lost == 20


def test_many_verdicts_at_once_fill_many_blocks(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "j")
    writer.add(*map(judged, range(5000)))
    writer.close()
    segment = Segment(tmp_path / "j")
    blocks = [found.head.records for found in segment.new_blocks() if isinstance(found, Located)]
    segment.close()
    assert sum(blocks) == 5000 and max(blocks) == 512


def test_instructions_that_are_no_text_are_kept_with_their_request(tmp_path: Path) -> None:
    parts: Any = [{"type": "text", "text": "judge it"}]
    system, user = Message(role="system", content=parts), Message(role="user", content="this")
    write(
        tmp_path / "j",
        [
            structs.replace(judged(), request=ChatRequest(messages))
            for messages in ((system, user), (user,), ())
        ],
    )
    assert [record["request"] for record in read(tmp_path / "j")] == [[system, user], [user], []]


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    write(tmp_path / "j", [judged()])
    assert (tmp_path / "j").stat().st_mode & 0o077 == 0


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from journals import judged
from plaudit.journal.writer import JournalWriter
writer = JournalWriter(sys.argv[1], run="killed")
said = 0
for number in range(10**9):
    writer.add(judged(number))
    if writer.written > said:
        said = writer.written
        print(said, flush=True)
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "j"
    acknowledged = 0
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), str(Path(__file__).parent.parent)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        last = [int(child.stdout.readline()) for _ in range(3)][-1]
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        acknowledged += max([last, *map(int, rest)])
    with JournalIndex(path) as index:
        assert len(index) >= acknowledged
        assert all(record.text.response for record in index.records(range(0, len(index), 97)))


def test_a_file_that_goes_while_it_is_looked_at_is_named_and_what_was_read_stays(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [judged(n) for n in range(3)])
    with JournalIndex(path) as index:
        path.rename(tmp_path / "elsewhere")
        index.refresh()
        assert (len(index), index.text(2).response) == (3, "answer 2")
        assert len(index.damage) == 1 and str(path) in index.damage[0]
        path.write_bytes(b"something else, longer than the title of a journal")
        index.refresh()
        assert len(index) == 3 and len(index.damage) == 1
        path.unlink()
        (tmp_path / "elsewhere").rename(path)
        index.refresh()
        assert len(index) == 3 and index.damage == []


@pytest.mark.parametrize("kind", [SESSION, ACTIVITY, VERDICTS])
@pytest.mark.parametrize(
    "content",
    [b'{"at":"\xff","session":"\xff"}', b"\x92\x91\xa1\xff\xc4\x00", b'{"settings":' + b"[" * 99_999],
)
def test_a_block_of_nonsense_with_the_right_checksums_is_damage(
    kind: int, content: bytes, tmp_path: Path
) -> None:
    write(path := tmp_path / "j", [judged(0)])
    with path.open("ab") as file:
        file.write(block(kind, content, content, records=1))
    write(path, [judged(1)])
    with JournalIndex(path) as index:
        assert [record.text.response for record in index.records()] == ["answer 0", "answer 1"]
        assert len(index.damage) == 1


def test_texts_of_nonsense_with_the_right_checksums_are_empty_ones(tmp_path: Path) -> None:
    write(path := tmp_path / "j", [judged(0)])
    data = path.read_bytes()
    place = max(at for at in range(len(data)) if (head := read_head(data[at:])) and head.kind == VERDICTS)
    head = read_head(data[place:])
    assert head is not None
    start, end = place + HEAD_SIZE, place + HEAD_SIZE + head.facts_bytes
    facts = unpacked(data[start:end], head.facts_crc)
    texts = unpacked(data[end : end + head.texts_bytes], head.texts_crc).replace(b"answer 0", b"answer \xff")
    path.write_bytes(data[:place] + block(VERDICTS, facts, texts, records=1))
    with JournalIndex(path) as index:
        assert [record.text.response for record in index.records()] == [""]
        assert len(index.damage) == 1


def test_a_block_that_unpacks_into_more_than_memory_holds_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaudit.journal.blocks.MOST_BYTES", 100_000)
    write(tmp_path / "j", [judged(response="x" * 500_000)])
    write(tmp_path / "j", [judged(1)])
    with JournalIndex(tmp_path / "j") as index:
        assert [index.text(row).response for row in range(2)] == ["", "answer 1"]
        assert len(index.damage) == 1
