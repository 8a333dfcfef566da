"""Measuring surefoot on public benchmarks: adapters, and attack suites of its own."""
