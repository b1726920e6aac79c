"""Stands for SGLang's compiled CPU kernels (they need AVX512). A dense Llama calls none of them.

NGRAM speculation needs a few to get as far as its first verify step; they are written here in plain Python. Any other
kernel raises when it is called.
"""

import ctypes

import torch

__version__ = "0.0.0"


def assign_req_to_token_pool_cpu(req_indices, pool, start, end, locations, pool_len):
    """Writes each request's new cache locations into its row of the pool."""
    taken = 0
    for row, first, last in zip(req_indices.tolist(), start.tolist(), end.tolist(), strict=True):
        pool[row, first:last] = locations[taken : taken + last - first].to(pool.dtype)
        taken += last - first


def assign_extend_cache_locs_cpu(req_indices, pool, start, end, out, pool_len):
    """Reads the locations back, one request after the other."""
    parts = [
        pool[row, first:last]
        for row, first, last in zip(req_indices.tolist(), start.tolist(), end.tolist(), strict=True)
    ]
    joined = torch.cat(parts)
    out[: joined.numel()] = joined.to(out.dtype)


def copy_all_layer_kv_cache_cpu(addresses, strides, target, source):
    """Moves cache rows of every layer; all rows are read before one is written."""
    for address, stride in zip(addresses.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(address + row * stride, stride) for row in source.tolist()]
        for row, content in zip(target.tolist(), rows, strict=True):
            ctypes.memmove(address + row * stride, content, stride)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"kernel {name} has no stand-in")

    return missing
