#!/bin/bash
# What bash offers behind a line that was typed: completion.sh DTSIM
set -u
# shellcheck source=/dev/null
. <("$1" completion bash) || exit 1
failed=0
scenario=$(mktemp)
trap 'rm -f "$scenario"' EXIT
cat >"$scenario" <<'end'
model: {preset: gpt2-355m}
cluster: {platform: dgx-a100, nodes: 1}
batch: {global: 64}
strategy: {schedule: chimera, pipeline: 4}
end

# offers LINE WORD...: the words, in any order, and no others.
offers()
{
    local line=$1 found

    shift
    COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    _dtsim
    found=$(printf '%s\n' "${COMPREPLY[@]}" | sort)
    if [ "$found" != "$(printf '%s\n' "$@" | sort)" ]; then
        printf 'behind "%s" expected: %s; found:\n%s\n' "$line" "$*" "$found"
        failed=1
    fi
}

offers 'dtsim ru' run
offers 'dtsim c' check collective calibrate compare completion
offers 'dtsim run a.yaml --en' --engine
offers 'dtsim run a.yaml --engine i' ideal
offers 'dtsim run a.yaml --engine=i' ideal
offers 'dtsim check a.yaml --m' --memory
offers 'dtsim schema --s'
offers 'dtsim run a.yaml --set strategy.schedule=inter' interleaved interleaved-zb
offers 'dtsim run a.yaml --set strategy.tens' strategy.tensor=
offers 'dtsim run a.yaml --set cluster=dgx-h1' dgx-h100
offers 'dtsim run a.yaml --set software.clip_gradients=' true false
offers 'dtsim run a.yaml --set memory.offload=' none activations tensors weights optimizer
offers 'dtsim run a.yaml --set strategy.micro_batch_g' strategy.micro_batch_group=
offers "$1 run $scenario --set strategy.tensor=" 1 2
offers "$1 check $scenario --values strategy.tens" strategy.tensor=
offers "$1 run $scenario --set strategy.schedule=pipedream" pipedream pipedream-2bw
offers "$1 run $scenario --set strategy.zero=1 --set strategy.local_steps=" 
offers 'dtsim help gpt2-1' gpt2-1.5b gpt2-124m
offers 'dtsim help zb-h' zb-h1 zb-h2
offers 'dtsim plot gan' gantt
offers 'dtsim plot gantt --format ' png svg pdf
offers 'dtsim collective dgx-a' dgx-a100
offers 'dtsim unknown --j'
if command -v zsh >/dev/null; then
    "$1" completion zsh >"${TMPDIR:-/tmp}/dtsim-completion.$$" && zsh -n "${TMPDIR:-/tmp}/dtsim-completion.$$" || failed=1
    rm -f "${TMPDIR:-/tmp}/dtsim-completion.$$"
fi
exit $failed
