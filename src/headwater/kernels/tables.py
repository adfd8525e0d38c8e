"""Rows of a table by word: which words a batch has, and what is added to their rows.

A table keeps the words that have occurred: the row of word w is `rows[slots[w] - 1]`, and a slot of 0 means no row.
"""

from headwater.kernels._jit import kernel


@kernel
def gather_words(indices, slots, words, local):
    """List the words of indices in the order they come in, with their slots, and the place of each in the list."""
    found = 0
    for j in range(indices.size):
        word = indices[j]
        if slots[word] == 0:
            words[found] = word
            found += 1
            slots[word] = found
        local[j] = slots[word] - 1
    return found


@kernel
def place_words(words, slots, known, used):
    """Give every word that has no slot the next one; return how many slots are used then."""
    for u in range(words.size):
        if slots[words[u]] == 0:
            known[used] = words[u]
            used += 1
            slots[words[u]] = used
    return used


@kernel
def add_rows(target, slots, words, rows, gain):
    for u in range(words.size):
        place = slots[words[u]] - 1
        for k in range(rows.shape[1]):
            target[place, k] += gain * rows[u, k]


@kernel
def read_rows(source, slots, words, factor, out):
    for u in range(words.size):
        slot = slots[words[u]]
        if slot == 0:
            for k in range(out.shape[1]):
                out[u, k] = 0.0
        else:
            for k in range(out.shape[1]):
                out[u, k] = factor * source[slot - 1, k]


@kernel
def save_rows(source, slots, words, touched, saved_slots, saved_rows):
    """Copy the rows of those words whose slot is below touched.size + 1 and not touched yet; return how many."""
    count = 0
    for u in range(words.size):
        place = slots[words[u]] - 1
        if place < 0 or place >= touched.size or touched[place]:
            continue
        touched[place] = True
        saved_slots[count] = place
        for k in range(source.shape[1]):
            saved_rows[count, k] = source[place, k]
        count += 1
    return count
