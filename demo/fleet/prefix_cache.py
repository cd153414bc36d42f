"""The prefix cache of one engine: blocks of keys and values that outlive their request, evicted least recently used.

A block's hash covers all tokens before it, so the blocks of one chain (a system prompt; a conversation after it) are
found from the front and lost from the tail. A chain is therefore kept as one entry with the length that is cached.
"""

from collections import OrderedDict
from collections.abc import Hashable


class PrefixCache:
    """Cached tokens per chain. `pinned`: tokens that running requests use; `idle`: tokens that may be evicted."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.pinned = 0
        self.idle = 0
        self._tokens: OrderedDict[Hashable, int] = OrderedDict()
        self._uses: dict[Hashable, int] = {}

    def whole_blocks(self, tokens: int) -> int:
        """Tokens in full blocks: a block that is not full is never shared."""
        return tokens - tokens % self.block_tokens

    def length(self, chain: Hashable) -> int:
        """Cached tokens of a chain; looking does not count as use."""
        return self._tokens.get(chain, 0)

    def pin(self, chain: Hashable) -> None:
        """A request uses the chain: it cannot be evicted until `unpin`."""
        tokens = self._tokens.setdefault(chain, 0)
        self._tokens.move_to_end(chain)
        uses = self._uses.get(chain, 0)
        if uses == 0:
            self.idle -= tokens
            self.pinned += tokens
        self._uses[chain] = uses + 1

    def unpin(self, chain: Hashable) -> None:
        """The request is done with the chain, which was used just now."""
        uses = self._uses[chain] - 1
        tokens = self._tokens[chain]
        if uses:
            self._uses[chain] = uses
            return
        del self._uses[chain]
        self.pinned -= tokens
        if tokens:
            self.idle += tokens
            self._tokens.move_to_end(chain)
        else:
            del self._tokens[chain]

    def extend(self, chain: Hashable, tokens: int) -> int:
        """A pinned chain is now cached up to `tokens` at least; returns by how many tokens it grew."""
        grown = self.whole_blocks(tokens) - self._tokens[chain]
        if grown <= 0:
            return 0
        self._tokens[chain] += grown
        self.pinned += grown
        return grown

    def evict(self, wanted: int) -> None:
        """Free at least `wanted` idle tokens, from the tails of the chains that were used longest ago."""
        if wanted > self.idle:
            raise ValueError(f"{wanted} tokens cannot be evicted: only {self.idle} are idle")
        emptied = []
        for chain, tokens in self._tokens.items():
            if wanted <= 0:
                break
            if chain in self._uses:
                continue
            cut = min(tokens, wanted + -wanted % self.block_tokens)
            self._tokens[chain] = tokens - cut
            self.idle -= cut
            wanted -= cut
            if cut == tokens:
                emptied.append(chain)
        for chain in emptied:
            del self._tokens[chain]
