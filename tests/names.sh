#!/bin/sh
# platforms/names: every word is explained, every topic that a word names has help, and every alias leads to a file of its own,
# in any case and with any spaces.
#   names.sh DTSIM ROOT
set -eu
dtsim=$1 root=$2 status=0 count=0
fail() { echo "$*"; status=1; }

words=$root/platforms/names/words.yaml
sed -n "s/^- word: //p; s/^  also: \[\(.*\)\]/\1/p" "$words" | tr ',' '\n' | sed "s/^ *//; s/'//g" >words.txt
while read -r word; do
    count=$((count + 1))
    "$dtsim" help "$word" 2>&1 | head -1 >first.txt
    grep -qi '^dtsim help:' first.txt && fail "no help for the word '$word'"
done <words.txt
[ $count -gt 100 ] || fail "only $count words were found in $words"
sed -n "s/^  see: \[\(.*\)\]/\1/p" "$words" | tr ',' '\n' | sed 's/^ *//' | sort -u >see.txt
while read -r topic; do
    "$dtsim" help "$topic" >/dev/null 2>&1 || fail "no help for the topic '$topic', which a word names"
done <see.txt

# A row a line: the folder, the alias and the file, where there is one.
awk '/^[a-z].*:$/ {sub(":", ""); folder = $0; next}
     /^  [^#]/ {sub(/ *#.*/, ""); at = match($0, /: [^:]*$/); name = substr($0, 3, at - 3); to = substr($0, at + 2)
                if (to !~ /^\[/) print folder "\t" name "\t" to}' "$root/platforms/names/aliases.yaml" >aliases.txt
tab=$(printf '\t')
while IFS=$tab read -r folder name to; do
    case $folder in
    platforms) set=cluster.platform ;;
    platforms/gpus) set=cluster.gpu ;;
    *) set=model.preset ;;
    esac
    [ -e "$root/$folder/$to.yaml" ] || fail "the alias '$name' means $to, which $folder has not"
    upper=$(printf '%s' "$name" | tr '[:lower:]-' '[:upper:] ')
    printf 'model: {preset: llama3-8b}\ncluster: {platform: dgx-h100}\nbatch: {global: 64, micro: 1}\nsoftware: none\n' >base.yaml
    for word in "$name" "$upper"; do
        "$dtsim" help "$word" 2>&1 | grep -q "/$to.yaml" || fail "help of '$word' does not show $to"
        "$dtsim" show base.yaml --set "$set=$word" 2>got.txt >/dev/null || true
        grep -qE "unknown|cannot read|may be" got.txt && fail "'$word' is not found: $(head -1 got.txt)"
    done
done <aliases.txt
[ "$(wc -l <aliases.txt)" -gt 60 ] || fail "only $(wc -l <aliases.txt) aliases were read"
exit $status
