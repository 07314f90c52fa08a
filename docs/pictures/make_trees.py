"""Makes the decision trees of docs/choosing.md: questions from top to bottom, the answer to the right of the first yes.

python docs/pictures/make_trees.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

HERE = Path(__file__).parent
ONLINE = (
    "Which agent? Questions from top to bottom; take the answer beside the first yes",
    [
        (["Must a decision never be", "random?"], ["LinUCB(prior, width=1 … 2)", "optimism in place of draws"]),
        (
            ["Do you know categories, topics", "or groups of the items?"],
            ["meTS(prior)", "showing one item teaches about its group"],
        ),
        (
            ["Do you have embeddings", "in no neat groups?"],
            ["dTS(pretrain(estimates).prior(K))", "a diffusion prior, learned from them"],
        ),
        (
            ["Items of one kind, many of", "them, little data for each?"],
            ["HierTS(prior)", "one shared mean, learned from all items"],
        ),
        (None, ["LinTS(prior)", "independent items, nothing to get wrong"]),
    ],
)
OFFLINE = (
    "Which estimator or objective? Questions from top to bottom; take the answer beside the first yes",
    [
        (
            ["Was nothing left to chance", "when the log was written?"],
            ["dm with a reward model, with care", "no weighting can help; log propensities next time"],
        ),
        (
            ["Do you want a new policy", "from the log?"],
            ["learn(log, SoftmaxPolicy(…), cLPI())", "then evaluate it on other rows"],
        ),
        (
            ["Must the answer be a promise", "rather than an estimate?"],
            ["certify(policy, log)", "a lower bound that holds for any number of rows"],
        ),
        (
            ["Do single actions hardly", "overlap (tiny effective size)?"],
            ["MIPS, OffCEM, PC", "weights of clusters or neighbourhoods"],
        ),
        (
            ["Do you have a reward model", "(sdm, dm_bayes) of other rows?"],
            ["dr, or sndr with a few large weights", "right if the model or the propensities are"],
        ),
        (None, ["snips, with cips beside it", "the default of evaluate"]),
    ],
)
LEFT, QUESTION, GAP, ANSWER, STEP, HEIGHT = 10, 230, 70, 330, 84, 54


def tree(title: str, rungs: list[tuple[list[str] | None, list[str]]]) -> str:
    """One tree as SVG."""
    width, height = LEFT + QUESTION + GAP + ANSWER + 10, STEP * len(rungs) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    right = LEFT + QUESTION + GAP
    for number, (question, answer) in enumerate(rungs):
        top = STEP * number + 8
        middle = top + HEIGHT / 2
        if question is not None:
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{QUESTION}" height="{HEIGHT}" rx="8" fill="#fff" stroke="#0072b2" '
                f'stroke-width="1.5"/>'
            )
            parts += _lines(question, LEFT + QUESTION / 2, middle, "middle", first_bold=False)
            parts.append(
                _arrow(LEFT + QUESTION, middle, right - 4, middle, "yes", LEFT + QUESTION + GAP / 2 - 4, middle - 7)
            )
            below = LEFT + QUESTION / 2
            last = rungs[number + 1][0] is None
            end = STEP * (number + 1) + 8 + (HEIGHT / 2 if last else -4)
            if last:
                parts.append(
                    f'<path d="M{below} {top + HEIGHT}V{end}H{right - 4}" fill="none" stroke="#555" '
                    f'stroke-width="1.5" marker-end="url(#arrow)"/>'
                )
                parts.append(_word("no", below + 8, top + HEIGHT + 19, "start"))
            else:
                parts.append(_arrow(below, top + HEIGHT, below, end, "no", below + 8, top + HEIGHT + 19, "start"))
        parts.append(f'<rect x="{right}" y="{top}" width="{ANSWER}" height="{HEIGHT}" rx="8" fill="#e8f1f8"/>')
        parts += _lines(answer, right + 14, middle, "start", first_bold=True)
    return "\n".join([*parts, "</svg>\n"])


def _lines(lines: list[str], x: float, middle: float, anchor: str, first_bold: bool) -> list[str]:
    top = middle - 9 * (len(lines) - 1) + 5
    weights = [600 if first_bold and i == 0 else 400 for i in range(len(lines))]
    return [
        f'<text x="{x:g}" y="{top + 18 * i:g}" text-anchor="{anchor}" fill="#222" '
        f'font-weight="{weights[i]}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]


def _word(text: str, x: float, y: float, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="#555" font-size="13">{text}</text>'


def _arrow(
    x: float, y: float, to_x: float, to_y: float, word: str, word_x: float, word_y: float, anchor: str = "middle"
) -> str:
    line = f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" stroke="#555" stroke-width="1.5" marker-end="url(#arrow)" fill="none"/>'
    return line + _word(word, word_x, word_y, anchor)


if __name__ == "__main__":
    for name, (title, rungs) in {"which_agent": ONLINE, "which_estimator": OFFLINE}.items():
        (HERE / f"{name}.svg").write_text(tree(title, rungs), encoding="utf-8")
