#!/usr/bin/env bash
# Makes the sample traces in the directory given. The same bytes every time: see SHA256SUMS.
set -euo pipefail
out=${1:?usage: make.sh DIRECTORY}

# make NAME REQUESTS BLOCK_TOKENS [PARAMETER=VALUE...]
make() {
    local kind=$1 requests=$2 block_tokens=$3
    shift 3
    local parameters=()
    for parameter in "$@"; do
        parameters+=(--param "$parameter")
    done
    kvreplay generate "$kind" --requests "$requests" --seed 1 --block-tokens "$block_tokens" \
        "${parameters[@]}" --out "$out/$kind.jsonl" --overwrite --quiet
}

# Lengths and rates are below the defaults where files would pass 300 kB or sessions would not come back in time.
make multi_turn 220 128 rate_per_s=0.5
make shared_prefix 240 64 tenants=16 prefix_tokens=1500
make rag_documents 250 128 documents=200
make agent 150 512 rate_per_s=0.3 context_tokens=60000 subagent_share=0.02
make cyclic_scan 30 16 documents=10 document_tokens=5008
make unique 200 64
make mixed 250 128 rate_per_s=0.5
