"""Tree bookkeeping of NGRAM in plain torch."""


def reconstruct_indices_from_tree_mask(mask, seq_lens, positions, index, next_token, next_sibling, batch, width):
    """From the ancestor mask of each tree: depth of every node, its first child and its next sibling (-1: none)."""
    trees = mask.view(batch, width, width).bool()
    views = [tensor.view(batch, width) for tensor in (positions, index, next_token, next_sibling)]
    depth_of, index_of, child_of, sibling_of = views
    for tree in range(batch):
        above = [[j for j in range(node) if trees[tree, node, j]] for node in range(width)]
        parent = [max(nodes, default=-1) for nodes in above]
        for node in range(width):
            depth_of[tree, node] = int(seq_lens[tree]) + len(above[node])
            index_of[tree, node] = tree * width + node
            children = [other for other in range(node + 1, width) if parent[other] == node]
            siblings = [other for other in range(node + 1, width) if parent[other] == parent[node] != -1]
            child_of[tree, node] = children[0] if children else -1
            sibling_of[tree, node] = siblings[0] if siblings else -1
