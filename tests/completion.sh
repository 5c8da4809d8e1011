#!/bin/bash
# What bash, zsh and fish offer behind a line that was typed: completion.sh DTSIM
set -u
dtsim=$(realpath "$1")
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" && ln -s "$dtsim" "$scratch/bin/dtsim"
PATH=$scratch/bin:$PATH
# shellcheck source=/dev/null
. <(dtsim completion bash) || exit 1
scenario=$scratch/scenario.yaml
cat >"$scenario" <<'end'
model: {preset: gpt2-355m}
cluster: {platform: dgx-a100, nodes: 1}
batch: {global: 64}
strategy: {schedule: chimera, pipeline: 4}
end

# What a shell offers behind a line, a word a line. zsh has no editor here: its functions for it only tell what they got.
bash_offers()
{
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    _dtsim
    printf '%s\n' "${COMPREPLY[@]}"
}

zsh_offers()
{
    zsh -f -c 'compdef() { :; }; _files() { :; }
        compadd() { [[ $1 == -S ]] && shift 2; shift; print -rl -- $@; }
        . <(dtsim completion zsh)
        words=("${(@s: :)1}") CURRENT=$#words
        _dtsim' zsh "$1"
}

fish_offers()
{
    HOME=$scratch fish --no-config -c 'dtsim completion fish | source; complete -C $argv[1]' "$1"
}

# offers LINE WORD...: the words, in any order, and no others. bash leaves out what stands before the last '='.
offers()
{
    local line=$1 found expected shell

    shift
    expected=$(printf '%s\n' "$@" | sort)
    for shell in bash zsh fish; do
        command -v $shell >/dev/null || { echo "skipped: no $shell here"; continue; }
        [ $shell = bash ] || [ -n "$expected" ] || continue          # they look for files then
        found=$(${shell}_offers "$line" | grep . | sort)
        [[ ${line##* } == *=* && $shell != bash ]] && found=$(sed 's/^.*=//' <<<"$found")
        if [ "$found" != "$expected" ]; then
            printf '%s behind "%s" expected: %s; found:\n%s\n' $shell "$line" "$*" "$found"
            failed=1
        fi
    done
}

offers 'dtsim ru' run
offers 'dtsim c' check collective calibrate compare completion
offers 'dtsim run a.yaml --en' --engine
offers 'dtsim run a.yaml --engine i' ideal
offers 'dtsim run a.yaml --engine=i' ideal
offers 'dtsim check a.yaml --m' --memory
offers 'dtsim schema --s'
offers 'dtsim run a.yaml --color=al' always
offers 'dtsim run a.yaml --set strategy.schedule=inter' interleaved interleaved-zb
offers 'dtsim run a.yaml --set strategy.tens' strategy.tensor=
offers 'dtsim run a.yaml --set cluster=dgx-h1' dgx-h100
offers 'dtsim run a.yaml --set cluster=id' ideal
offers 'dtsim run a.yaml --set cluster.gpu=h100-80' h100-80gb
offers 'dtsim run a.yaml --set model.preset=gpt2-35' gpt2-355m
offers 'dtsim run a.yaml --set software=megatron-core-2026' megatron-core-2026
offers 'dtsim run a.yaml --set software.clip_gradients=' true false
offers 'dtsim run a.yaml --set memory.offload=' none activations tensors weights optimizer
offers 'dtsim run a.yaml --set strategy.micro_batch_g' strategy.micro_batch_group=
offers "dtsim run $scenario --set strategy.tensor=" 1 2
offers "dtsim check $scenario --values strategy.tens" strategy.tensor=
offers "dtsim run $scenario --set strategy.pipeline=2 --set cluster.nodes=2 --set strategy.tensor=" 1 2 4 8
offers "dtsim run $scenario --set strategy.schedule=pipedream" pipedream pipedream-2bw
offers "dtsim run $scenario --set strategy.zero=1 --set strategy.local_steps="
offers 'dtsim help gpt2-1' gpt2-1.5b gpt2-124m
offers 'dtsim help zb-h' zb-h1 zb-h2
offers 'dtsim plot gan' gantt
offers 'dtsim plot gantt --format ' png svg pdf
offers 'dtsim collective dgx-a' dgx-a100
offers 'dtsim emit me' megatron
offers 'dtsim unknown --j'

# Every option that the help of a command explains comes in each shell.
for command in $(dtsim completion words ''); do
    # shellcheck disable=SC2046
    offers "dtsim $command a -" $(dtsim help "$command" | sed -n '/^usage/,$s/^  \(-[-a-z0-9]*\)\( .*\|$\)/\1/p') --color --help
done
exit $failed
