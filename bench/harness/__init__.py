"""Shared by the benchmark scripts: server processes, wire protocols, and tables of results."""
