"""Runs side by side: what changed, and whether it is more than noise.

sides        which runs are repetitions of one another, and which can be compared at all
figures      what is compared, per query
ranktest     Mann-Whitney's test, exact for small samples
noise        how far equal runs may lie apart, where repetitions are too few for a test
gates        `--fail p90:+10%`: grammar and judgement
comparison   all of it as one document, `espbench-comparison/1`
baselines    sets of runs by name
"""
