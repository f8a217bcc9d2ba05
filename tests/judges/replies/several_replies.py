"""Replies of judges that give several verdicts at once: groups and checklists."""

from __future__ import annotations

from reply_case import ReplyCase as R

G = '{"verdicts": [{"id": "ONE", "reason": "a", "score": 8}, {"id": "TWO", "reason": "b", "score": 2}]}'
C = '{"reason_correct": "Yes.", "correct": true, "reason_brief": "Yes.", "brief": true}'
NO_GROUP = [
    G + "\n\nWait, I swapped them.",
    G + "\n\nThe ids are swapped.",
    G + "\n\nONE: 3, TWO: 9",
    "Example:\n" + G,
    "If all were right: " + G,
    G + "\n" + G.replace("8", "3"),
    G.replace('"ONE"', '"one"'),
    G.replace("}]}", '}, {"id": "XXX", "reason": "c", "score": 5}]}'),
    G.replace('"score": 8', '"score": "8-9"'),
    G.replace('"score": 8', '"score": null'),
    '{"example": ' + G + "}",
    "<think>" + G,
    G.replace('"score": 8', '"score": 8, "Score": 3'),
    '{"ONE": 8, "TWO": 2, "note": "?"}',
    "ONE: 8\nTWO: 2",
    "The first is 8, the second 2.",
    G[:-10],
    '{"verdicts": [{"id": "ONE", "score": 8}]}{"verdicts": [{"id": "TWO", "score": 2}]}',
    '{"verdicts": [{"id": "ONE", "reason": "It "says", "score": 9}", "score": 8}, {"id": "TWO"}]}',
    G + "\n\nScore: 5",
    "My ranking is TWO > ONE.\n" + G.replace("8", "1") + "\n\nRevised: ONE 8.",
]
NO_CHECKLIST = [
    C + "\n\nActually brief is not met.",
    C + "\n\nCorrect: false",
    C + "\n\nBrief: false",
    "For instance:\n" + C,
    C.replace('"brief": true', '"brief": "mostly"'),
    C.replace('"brief": true', '"brief": 1'),
    C.replace('"brief": true}', '"brief": true, "brief": false}'),
    C.replace('"brief": true}', '"brief": true, "Brief": false}'),
    C.replace('"brief": true}', '"brief": true, "extra": false}'),
    '{"correct": {"met": true, "sure": false}, "brief": {"met": true}}',
    '{"correct": true}',
    "correct: true\nbrief: false",
    '{"criteria": {"correct": true, "brief": true}, "correct": false}',
    C + "\n" + C.replace('"brief": true', '"brief": false'),
    '{"correct": [true, false], "brief": true}',
    C + "\n\nBut the second criterion is not really met.",
    C + "\n\nNote that brief fails.",
    '{"reason_correct": "Yes.", "correct": true, "reason_brief": "It is not brief", "brief": }',
]
A_GROUP = [
    "Here are my scores:\n\n" + G,
    "```json\n" + G + "\n```",
    G + "\n\nThe first response is right, the second is not.",
    "<think>ONE 3</think>" + G,
    G.replace('"score": 8', '"score": "8/10"'),
    "**Evaluation**\n\n" + G,
    G.replace('"id": "ONE"', '"id": "<response-ONE>"'),
    G.replace("verdicts", "Verdicts"),
    "I compared both responses carefully.\n\n" + G,
    '{"verdicts":[{"id":"ONE","reason":"It says "a" here","score":8},{"id":"TWO","reason":"b","score":2}]}',
    '{"verdicts": {"ONE": {"reason": "a", "score": 8}, "TWO": {"reason": "b", "score": 2}}}',
    '[{"id": "ONE", "reason": "a", "score": 8}, {"id": "TWO", "reason": "b", "score": 2}]',
    '{"id": "ONE", "reason": "a", "score": 8}\n{"id": "TWO", "reason": "b", "score": 2}',
    '{"results": [{"id": "ONE", "reason": "a", "score": 8}, {"id": "TWO", "reason": "b", "score": 2}]}',
    '{"ONE": {"reason": "a", "score": 8}, "TWO": {"reason": "b", "score": 2}}',
]
A_CHECKLIST = [
    "Here is my evaluation:\n" + C,
    "```json\n" + C + "\n```",
    C + "\n\nThe response meets both criteria.",
    C.replace("true", '"yes"'),
    C.replace("true", "True"),
    "<think>correct false</think>" + C,
    '{"verdict": ' + C + "}",
    C.replace('"Yes.", "correct"', '"It says "100" here.", "correct"'),
    "[" + C + "]",
    C.replace('"correct":', '"Correct":').replace('"brief":', '"Brief":'),
    '{"correct": {"met": true, "reason": "x"}, "brief": {"met": true, "reason": "y"}}',
    '{"reason": "Both.", "correct": true, "brief": true}',
    '{"correct": true, "brief": true, "reason_correct": "a", "reason_brief": "b"}',
    '{"criteria": {"correct": true, "brief": true}}',
]

REPLIES = [
    *(R("any", "no group", text, None, "group") for text in NO_GROUP),
    *(R("any", "no checklist", text, None, "checklist") for text in NO_CHECKLIST),
    *(R("any", "a group", text, 5.0, "group") for text in A_GROUP),
    *(R("any", "a checklist", text, 1.0, "checklist") for text in A_CHECKLIST),
]
