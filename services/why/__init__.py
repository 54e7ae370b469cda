"""Why something is as it is: the chain of causes of its present state, read from the log.

`sentences` says each event in words, `links` knows what each event came of, `chain` walks backwards from the
present, `reader` fetches from the log what the walk asks for. All but the reader are pure.
"""
