#!/bin/sh
# .ci/commits in a small history: which commits it lists, after which base, and that it says where it is skipped.
set -u
if ! command -v git >/dev/null; then
    echo "skipped: there is no git"
    exit 0
fi
checked=$(realpath "$(dirname "$0")/../.ci/commits") || exit 2
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
unset DTSIM_BASE GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
HOME=$scratch GIT_CONFIG_NOSYSTEM=1
GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export HOME GIT_CONFIG_NOSYSTEM GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
mkdir -p "$scratch/tree/.ci" "$scratch/tree/tests/golden/cli" "$scratch/tree/scenarios/paper"
cd "$scratch/tree" || exit 2
cp "$checked" .ci/commits
git init -q . && git checkout -q -b work || exit 2
status=0
fail()
{
    echo "$*"
    status=1
}
# commit FILE TEXT MESSAGE...: writes the file; of two messages the second is the body.
commit()
{
    file=$1 text=$2 first=$3
    shift 3
    printf '%s\n' "$text" >"$file"
    git add -A && git commit -q -m "$first" ${1+-m "$1"} || exit 2
}
# expect CODE LISTED: of the commits after the tag base, the subjects that are listed.
expect()
{
    printed=$(.ci/commits base)
    code=$?
    listed=$(printf '%s\n' "$printed" | sed -n 's/^[0-9a-f]\{7,\} //p' | tr '\n' ';')
    [ $code = "$1" ] && [ "$listed" = "$2" ] || fail "expected $1 '$2', found $code '$listed'"
}
commit tests/golden/cli/a.golden one start
commit scenarios/paper/first.tsv row first
commit scenarios/paper/errors.tsv 1 errors
git tag base
expect 0 ''
commit tests/golden/cli/b.golden new 'a new case'
commit scenarios/paper/first.tsv 'row
added' 'a new row'
commit README.md words 'no number'
commit tests/golden/cli/a.golden two 'a case with a reason' 'The reason.'
expect 0 ''
commit tests/golden/cli/a.golden three 'a case without'
expect 1 'a case without;'
commit scenarios/paper/errors.tsv 2 'errors without'
expect 1 'a case without;errors without;'
commit scenarios/paper/first.tsv 'other
added' 'a row changed' 'A reason that does not count.'
expect 1 'a case without;errors without;a row changed;'

[ "$(.ci/commits)" = "skipped: reasons of commits, for there is no base: DTSIM_BASE is not set, and the branch has no upstream" ] ||
    fail "expected that it is skipped"
DTSIM_BASE=HEAD .ci/commits || fail "expected nothing after HEAD"
DTSIM_BASE=base .ci/commits >/dev/null && fail "expected commits after DTSIM_BASE"
DTSIM_BASE=nowhere .ci/commits 2>"$scratch/err"
[ $? = 2 ] && grep -q "no commit 'nowhere'" "$scratch/err" || fail "expected that an unknown base is an error"
git branch -q --track other work 2>/dev/null && git checkout -q other && git branch -q -f work base || exit 2
.ci/commits >/dev/null && fail "expected commits after the upstream"
rm -rf .git
.ci/commits 2>&1 | grep -q '^skipped: ' || fail "expected that it is skipped where there is no history"
exit $status
