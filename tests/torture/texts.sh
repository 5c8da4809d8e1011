#!/bin/bash
# Hostile texts as names of files, words of the command line, values of --set, and names in scenarios: no output to a
# terminal or a file for people has a byte that steers a terminal, breaks a line or turns the direction of writing.
#   texts.sh DTSIM [TEXTS]    up to 100: each text in an eighth of the commands; more: in all of them
set -u
dtsim=$(realpath "$1") most=${2:-300}
here=$(realpath "$(dirname "$0")/../..")
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
export LC_ALL=C
RANDOM=1
outputs=0 bad=0
parts=($'\e[31m' $'\e]0;title\a' $'\e[2J' $'\b' $'\r' $'\x7f' $'\xc2\x9b31m' $'\xe2\x80\xae' $'\xe2\x81\xa6' $'\xe2\x80\xa8'
    $'\xff' $'\xc3' $'\xed\xa0\x80' $'\n' $'\t' $'\v' $'\x01' $'\ec' "%s%n" '"' "'" '{' '|' '=' $'\xe2\x80\x8f')
harmful=$'[\x01-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xff|\xed\xa0'

look() # WORDS...: what a command says
{
    timeout 20 "$dtsim" "$@" >said 2>message </dev/null
    code=$?
    for stream in said message; do
        outputs=$((outputs + 1))
        if [ $code -gt 7 ] || grep -qE -a "$harmful" $stream || { [ $stream = message ] && grep -q '^forged' $stream; }; then
            bad=$((bad + 1))
            printf 'exit %d, %s of: %q\n' $code $stream "$*"
        fi
    done
}

# An eighth of the commands, with $text as a name, a word, a value, and a file of that name.
commands() # GROUP
{
    case $1 in
    0) look "$text"; look run "$text"; look check "$text.yaml" --set "batch.micro=$text" ;;
    1) look explain named.yaml --engine ideal; look explain named.yaml --engine ideal --markdown; look run named.yaml --engine ideal ;;
    2) look run "$text.yaml" --engine ideal -o "$text"; look compare "$text"; look compare "$text" --csv; look run named.yaml --engine ideal --json ;;
    3) look "--$text"; look plot "$text" x; look import "$text" x; look import kineto "$text"; look sweep "$text" ;;
    4) look train "$text.yaml" --engine ideal; look trace "$text"; look trace plain --format "$text"; look plot "$text" plain
        look compare "$text.yaml" "$here/scenarios/first.yaml" --engine ideal --markdown; look sweep "$text.yaml" --dry-run --set "batch.micro=$text"
        look check "$text.yaml" --set "$text"; look list "$text"; look help "$text"; look schema "$text"; look completion "$text" ;;
    6) look list "$text"; look help "./$text.yaml"; look results "$text" --csv; look plan "$text.yaml" --gpus 8 --budget "1 s"
        look collective "$text.yaml" --table --markdown; look validate "$text.yaml" --markdown; look show "$text.yaml" --groups ;;
    7) look run "$here/scenarios/first.yaml" --engine ideal --set "costs.profile=./$text.profile.yaml"; look calibrate check "$text.profile.yaml"
        look emit megatron "$text.yaml"; look emit "$text" "$text.yaml"; look plot gantt "$text" -o "$text.svg" --title "$text"; look serve "$text" ;;
    5) look run "$text.yaml" --engine "$text"; look collective "$text"; look validate "$text"; look results "$text"; look run first --budget "$text" ;;
    esac
}

"$dtsim" run "$here/scenarios/first.yaml" --engine ideal -o plain >/dev/null 2>&1 || exit 2
for ((i = 0; i < most; i++)); do
    text=a${parts[i % ${#parts[@]}]}
    for ((k = 0; k < i / ${#parts[@]}; k++)); do
        text+=${parts[RANDOM % ${#parts[@]}]}
    done
    text+=$'\nforged'
    json=$(printf %s "$text" | od -An -v -t u1 | tr -s ' \n' '\n' | sed '/^$/d' | while read -r byte; do
        printf '\\x%02x' "$byte"; done)
    cp "$here/scenarios/first.yaml" "$text.yaml"
    printf 'name: "%s"\n' "$json" | cat - "$here/scenarios/first.yaml" >named.yaml
    sed "s|^gpu: .*|gpu: \"${json//\\/\\\\}\"|" "$here"/calibration/data/h100-80gb.yaml >"$text.profile.yaml"
    for group in $([ "$most" -le 100 ] && echo $((i % 8)) || seq 0 7); do
        commands "$group"
    done
    rm -rf ./a*
done
echo "$most texts, $outputs outputs: $bad with a harmful byte or a wrong end"
[ $bad -eq 0 ]
