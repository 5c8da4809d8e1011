# shellcheck shell=sh disable=SC2034
# Sourced by demo.sh and test.sh: installs the Debian packages that are missing, and says which.
packages() {
    missing=
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -z "$missing" ] && return
    echo "== installing$missing"
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
build_packages="cmake ninja-build gcc g++ libc6-dev pkg-config libsimgrid-dev libyaml-dev libjansson-dev libgsl-dev \
                libxxhash-dev zlib1g-dev libcmocka-dev"
# For what is optional: modules of SQLite, Open MPI and HTTP, and what the tests of the first two read rows with.
module_packages="libsqlite3-dev libopenmpi-dev openmpi-bin libmicrohttpd-dev python3-pandas"
plot_packages="gnuplot-nox fonts-dejavu-core python3-cairo"
# For tests of reports in a browser, where apt has one.
web_packages="chromium chromium-driver python3-selenium"
