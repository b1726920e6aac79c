"""Dialects: how a build spells speculative decoding, above all tree speculation on a block drafter.

No SGLang release up to 0.5.23 accepts the algorithm DDTREE; builds that do disagree about flags and about what
``num_draft_tokens`` means. A dialect states both, what the build requires and turns off, and how well each is known.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

from planner._record import record
from planner.domain import Need
from planner.engine.flag_table import FlagKind, FlagSpec, FlagType
from planner.errors import InputError, nearest_hint

__all__ = [
    "DEFAULT_DIALECT",
    "DIALECTS",
    "Dialect",
    "DialectFlag",
    "DraftTokens",
    "TreeForm",
    "VerifyWidth",
    "get_dialect",
    "known_algorithms",
]

DEFAULT_DIALECT = "upstream"


class DraftTokens(StrEnum):
    """What ``speculative_num_draft_tokens`` counts for a tree in this build."""

    NODES_WITH_ROOT = "nodes_with_root"
    """budget + 1: the tokens that a verify step runs per request."""
    BLOCK_SIZE = "block_size"
    """The drafter's block; the budget has a flag of its own."""
    FREE = "free"
    """May differ from both; the build does not tie them."""
    NONE = "none"
    """The build has no tree."""


class VerifyWidth(StrEnum):
    """Where the tokens per request of a verify step come from."""

    DRAFT_TOKENS = "num_draft_tokens"
    BUDGET_PLUS_ONE = "budget_plus_one"


class TreeForm(StrEnum):
    """Who shapes the tree."""

    BUDGET = "budget"
    """A node budget; width is derived."""
    BUDGET_TOPK = "budget_topk"
    """A node budget and a width per depth."""
    WIDTH = "width"
    """A fixed width."""
    NONE = "none"


@record(kw_only=True)
class DialectFlag:
    """A flag that this build adds to its base version."""

    name: str
    type: FlagType
    dest: str
    known: bool
    """False: assumed from the build's description, not read in its source."""
    required: bool = False


@record(kw_only=True)
class Dialect:
    """Facts of one build, each as far as it is known."""

    id: str
    title: str
    algorithm: str | None
    """What ``--speculative-algorithm`` gets for a tree; None where the build has no tree."""
    base_version: str
    """Release whose flag table this build extends."""
    tree: TreeForm
    num_draft_tokens: DraftTokens
    verify_width: VerifyWidth
    flags: tuple[DialectFlag, ...] = ()
    page_size: int | None = None
    """Page size a tree needs; None: no requirement is known."""
    tree_attention_backend: str | None = None
    """Attention backend (prefill and decode) that a full tree needs."""
    cuda_graphs: bool | None = None
    """Whether verify graphs work for trees; None: not known."""
    disables_overlap: bool | None = None
    disables_mixed_chunk: bool | None = None
    refuses: frozenset[Need] = frozenset()
    greedy_only: bool = False
    allows_attention_dp: bool = False
    max_topk: int | None = None
    """Largest width a node may have by default."""
    budget_max: int | None = None
    """Largest budget; None: no limit is known."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables that exist in this build, with their defaults."""
    status: str
    evidence: tuple[str, ...]
    """Where each fact comes from."""
    assumed: tuple[str, ...] = ()
    """What is assumed because no source was seen."""

    @property
    def has_tree(self) -> bool:
        return self.algorithm is not None

    @cached_property
    def flag_specs(self) -> tuple[FlagSpec, ...]:
        """The added flags in the form of a flag table."""
        return tuple(
            FlagSpec(
                names=(flag.name,),
                dest=flag.dest,
                kind=FlagKind.TRUE if flag.type is FlagType.BOOL else FlagKind.VALUE,
                type=flag.type,
                default=False if flag.type is FlagType.BOOL else None,
            )
            for flag in self.flags
        )

    def draft_tokens(self, *, budget: int, block_size: int) -> int | None:
        """Value of ``--speculative-num-draft-tokens`` for a tree of ``budget`` nodes; None: leave it out."""
        if self.num_draft_tokens is DraftTokens.NODES_WITH_ROOT:
            return budget + 1
        if self.num_draft_tokens is DraftTokens.BLOCK_SIZE:
            return block_size
        return None

    def q_len(self, *, num_draft_tokens: int, budget: int | None) -> int:
        """Tokens that a verify step runs per request."""
        if self.verify_width is VerifyWidth.BUDGET_PLUS_ONE:
            return (budget if budget is not None else num_draft_tokens - 1) + 1
        return num_draft_tokens

    def derived_topk(self, *, budget: int, block_size: int) -> int:
        """Width of a tree where the build derives it from the budget: budget // (block_size - 1) + 1, at least 2, at
        most ``max_topk`` (pull request 29907, ddtree_utils)."""
        width = max(budget // (block_size - 1) + 1, 2)
        return width if self.max_topk is None else min(width, self.max_topk)

    def full_tree(self, *, budget: int, block_size: int) -> bool:
        """Whether the budget goes beyond the spine (the chain of block_size - 1 nodes)."""
        return budget > block_size - 1


_BUDGET = DialectFlag(
    name="--speculative-ddtree-budget", type=FlagType.INT, dest="speculative_ddtree_budget", known=True
)
_STUDY = "study of the proposal's text, not run here"

_ALL = (
    Dialect(
        id="field",
        title="patched nightly of May 2026 behind the field notes: DDTREE, num_draft_tokens counts nodes with the root",
        algorithm="DDTREE",
        base_version="0.5.12.post1",
        tree=TreeForm.BUDGET_TOPK,
        num_draft_tokens=DraftTokens.NODES_WITH_ROOT,
        verify_width=VerifyWidth.DRAFT_TOKENS,
        tree_attention_backend="triton",
        cuda_graphs=True,
        disables_overlap=True,
        disables_mixed_chunk=True,
        refuses=frozenset({Need.GRAMMAR, Need.LOGPROBS}),
        status="in service where the field notes were taken; not public",
        evidence=(
            "field notes, head: for DDTREE the engine sets num_draft_tokens = budget + 1, q_len is that number",
            "field notes FN-01 to FN-14: attention ran on Triton; graphs work at q_len 9, crash at 13 and 17",
            "0.5.12.post1 srt/server_args.py:3707,3713: DFLASH of that time turns off overlap and mixed chunk",
        ),
        assumed=(
            "--speculative-algorithm DDTREE, --speculative-num-draft-tokens (budget + 1) and --speculative-eagle-topk "
            "(width) are the spelling; the notes name budget and topk but not their flags",
            "the other flags are those of 0.5.12.post1, the release nearest to the nightly",
            "page size 1 (the Triton default); grammar and logprobs are refused as in the public proposals",
        ),
    ),
    Dialect(
        id="pr29907",
        title="sgl-project/sglang pull request 29907: DDTREE with a budget flag of its own",
        algorithm="DDTREE",
        base_version="0.5.13",
        tree=TreeForm.BUDGET,
        num_draft_tokens=DraftTokens.BLOCK_SIZE,
        verify_width=VerifyWidth.BUDGET_PLUS_ONE,
        flags=(_BUDGET,),
        page_size=1,
        tree_attention_backend="triton",
        cuda_graphs=True,
        disables_overlap=True,
        refuses=frozenset({Need.GRAMMAR, Need.LOGPROBS}),
        max_topk=6,
        env=(
            ("SGLANG_DDTREE_MAX_TOPK", "6"),
            ("SGLANG_DDTREE_DEPTH_BONUS", "0.2"),
            ("SGLANG_DDTREE_RANK_PROBE", ""),
        ),
        status="open in October 2026",
        evidence=(
            f"pull request 29907 of sgl-project/sglang, _handle_ddtree, commit 93e9850e ({_STUDY}): all DFLASH rules "
            "first; budget defaults to num_draft_tokens - 1; page size other than 1 is refused; a budget above "
            "block_size - 1 needs triton for prefill and decode; rejection sampling is refused; overlap is off; "
            "grammar and logprobs are refused at run time; width = min(max(budget // (block_size - 1) + 1, 2), 6)",
        ),
        assumed=("base release 0.5.13 (the pull request is of 2026-07-02)",),
    ),
    Dialect(
        id="rancy-wang",
        title="fork Rancy-Wang/sglang: DDTREE with block size and budget flags",
        algorithm="DDTREE",
        base_version="0.5.12.post1",
        tree=TreeForm.BUDGET,
        num_draft_tokens=DraftTokens.BLOCK_SIZE,
        verify_width=VerifyWidth.BUDGET_PLUS_ONE,
        flags=(
            DialectFlag(
                name="--speculative-ddtree-block-size",
                type=FlagType.INT,
                dest="speculative_ddtree_block_size",
                known=True,
            ),
            _BUDGET,
            DialectFlag(
                name="--speculative-ddtree-cuda-graph-buckets",
                type=FlagType.STR,
                dest="speculative_ddtree_cuda_graph_buckets",
                known=False,
            ),
        ),
        cuda_graphs=True,
        disables_overlap=True,
        disables_mixed_chunk=True,
        refuses=frozenset({Need.GRAMMAR, Need.LOGPROBS}),
        status="fork",
        evidence=(
            f"fork Rancy-Wang/sglang ({_STUDY}): num_draft_tokens is the block size and not the number of nodes; "
            "overlap and mixed chunk off; piecewise graphs off when the budget exceeds twice the block size",
        ),
        assumed=("base release", "grammar and logprobs are refused as in the other proposals", "bucket flag spelling"),
    ),
    Dialect(
        id="dflash-enable-ddtree",
        title="fork DB-Guo/sglang-ddtree-dev: DFLASH with a switch",
        algorithm="DFLASH",
        base_version="0.5.12.post1",
        tree=TreeForm.BUDGET,
        num_draft_tokens=DraftTokens.NODES_WITH_ROOT,
        verify_width=VerifyWidth.DRAFT_TOKENS,
        flags=(
            DialectFlag(
                name="--speculative-dflash-enable-ddtree",
                type=FlagType.BOOL,
                dest="speculative_dflash_enable_ddtree",
                known=True,
                required=True,
            ),
        ),
        refuses=frozenset({Need.GRAMMAR, Need.LOGPROBS}),
        status="fork",
        evidence=(f"fork DB-Guo/sglang-ddtree-dev ({_STUDY}): block size may differ from num_draft_tokens",),
        assumed=(
            "num_draft_tokens counts the nodes with the root and --speculative-dflash-block-size the block",
            "base release; graphs and overlap are not known",
            "grammar and logprobs are refused as in the other proposals",
        ),
    ),
    Dialect(
        id="pr31069",
        title="sgl-project/sglang pull request 31069: DFLASH with tree verify in the manner of EAGLE",
        algorithm="DFLASH",
        base_version="0.5.13",
        tree=TreeForm.BUDGET_TOPK,
        num_draft_tokens=DraftTokens.NODES_WITH_ROOT,
        verify_width=VerifyWidth.DRAFT_TOKENS,
        flags=(
            DialectFlag(
                name="--speculative-dflash-tree-verify",
                type=FlagType.BOOL,
                dest="speculative_dflash_tree_verify",
                known=True,
                required=True,
            ),
        ),
        max_topk=16,
        refuses=frozenset({Need.GRAMMAR, Need.LOGPROBS}),
        status="open in October 2026",
        evidence=(f"pull request 31069 of sgl-project/sglang ({_STUDY}): topk is one of 4, 8, 16; EAGLE-style tree",),
        assumed=(
            "num_draft_tokens counts the nodes with the root as in EAGLE; the width flag is --speculative-eagle-topk",
            "base release 0.5.13 (the pull request is of 2026-07-13); graphs and overlap are not known",
            "grammar and logprobs are refused as in the other proposals",
        ),
    ),
    Dialect(
        id="pr36196",
        title="sgl-project/sglang pull request 36196: DFLASH with a tree width",
        algorithm="DFLASH",
        base_version="0.5.16",
        tree=TreeForm.WIDTH,
        num_draft_tokens=DraftTokens.NODES_WITH_ROOT,
        verify_width=VerifyWidth.DRAFT_TOKENS,
        flags=(
            DialectFlag(
                name="--speculative-dflash-tree-width",
                type=FlagType.INT,
                dest="speculative_dflash_tree_width",
                known=True,
                required=True,
            ),
        ),
        refuses=frozenset({Need.GRAMMAR, Need.LOGPROBS}),
        greedy_only=True,
        env=(("SGLANG_DFLASH_MAX_NUM_NODES", ""),),
        status="open in October 2026",
        evidence=(
            f"pull request 36196 of sgl-project/sglang ({_STUDY}): num_draft_tokens is the number of nodes submitted "
            "to verify; greedy only",
        ),
        assumed=(
            "base release 0.5.16 (the pull request is of 2026-08-24); graphs and overlap are not known",
            "grammar and logprobs are refused as in the other proposals",
        ),
    ),
    Dialect(
        id="upstream",
        title="released SGLang: chains only on a block drafter",
        algorithm=None,
        base_version="0.5.23",
        tree=TreeForm.NONE,
        num_draft_tokens=DraftTokens.NONE,
        verify_width=VerifyWidth.DRAFT_TOKENS,
        cuda_graphs=True,
        disables_overlap=False,
        status="released",
        evidence=("0.5.11 to 0.5.23: SpeculativeAlgorithm has no DDTREE, DFLASH is a linear chain",),
    ),
)
DIALECTS = {dialect.id: dialect for dialect in _ALL}


def get_dialect(name: str | None) -> Dialect:
    """The dialect of that name (None: ``upstream``).

    Raises:
        InputError: unknown name; the nearest are named.
    """
    wanted = DEFAULT_DIALECT if name is None else name.lower()
    wanted = {"pr-29907": "pr29907", "pr-31069": "pr31069", "pr-36196": "pr36196"}.get(wanted, wanted)
    if wanted not in DIALECTS:
        raise InputError(f"unknown dialect {name!r}", nearest_hint(wanted, sorted(DIALECTS)))
    return DIALECTS[wanted]


_ALGORITHMS = {
    "0.5.11": ("DFLASH", "EAGLE", "EAGLE3", "NEXTN", "NGRAM", "STANDALONE"),
    "0.5.12.post1": ("DFLASH", "EAGLE", "EAGLE3", "FROZEN_KV_MTP", "NEXTN", "NGRAM", "STANDALONE"),
    "0.5.16": ("DFLASH", "DSPARK", "EAGLE", "EAGLE3", "FROZEN_KV_MTP", "NEXTN", "NGRAM", "STANDALONE"),
    "0.5.23": ("DFLASH", "DSPARK", "EAGLE", "EAGLE3", "FROZEN_KV_MTP", "NEXTN", "NGRAM", "STANDALONE", "UNO"),
}


def known_algorithms(version: str, dialect: str | None = None) -> tuple[str, ...]:
    """Speculative algorithms that a version (and dialect) accepts; a version in between has those of the older one."""
    from packaging.version import Version

    older = [name for name in _ALGORITHMS if Version(name) <= Version(version)] or ["0.5.11"]
    names = set(_ALGORITHMS[older[-1]])
    algorithm = get_dialect(dialect).algorithm
    return tuple(sorted(names | ({algorithm} if algorithm else set())))
