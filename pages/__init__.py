"""The page tool: experiments are measured, their figures stored, and pages rendered from prose and figures.

A page has a template in Markdown beside its experiment (papers/online_em.md), figures (docs/papers/online_em.json) and what is
rendered from both (docs/papers/online_em.md, pictures beside it). No figure of a page is typed by hand: tables and sentences
take them from the stored ones.
"""
