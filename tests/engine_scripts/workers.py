"""Workers of multiprocessing, forked or spawned, each with an engine. URL METHOD"""

import multiprocessing
import sys

from plaudit import Endpoint, Engine, Rubric, Sample

JUDGE = Rubric("Is it right?")
inherited: Engine | None = None


def work(endpoint: Endpoint, number: int) -> float | None:
    engine = inherited or Engine(endpoints=[endpoint])
    verdicts = engine.score([Sample("What is 1 + 1?", f"{number} {extra}") for extra in range(10)], JUDGE)
    return verdicts[0].score


if __name__ == "__main__":
    url, method = sys.argv[1:]
    endpoint = Endpoint(url, model="m", api_key="sk-secret")
    if method == "fork":
        inherited = Engine(endpoints=[endpoint])
        work(endpoint, -1)
    with multiprocessing.get_context(method).Pool(1 if method == "spawn" else 2) as pool:
        scores = pool.starmap(work, [(endpoint, number) for number in range(4)])
    assert None not in scores
    if inherited is not None:
        work(endpoint, -2)
    print("fine")
