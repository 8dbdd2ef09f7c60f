"""Numba kernels on UTF-8 buffers: character classes, words, repetition, hashes. No policy, no thresholds.

Every kernel takes `data` (uint8, the UTF-8 bytes of many texts) and `offsets` (int64, text i is
`data[offsets[i]:offsets[i + 1]]`), as a pyarrow `large_string` column stores them, and makes no Python object per
word. Imports nothing else of this project.
"""
