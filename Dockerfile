# dtsim in a container: docker build -t dtsim . && docker run --rm -v "$PWD":/work dtsim run scenario.yaml
# Not tested where there is no Docker; each of its steps is one that the tests take (tests/package.sh).
FROM debian:12 AS build
WORKDIR /source
COPY . .
RUN . ./packages.sh && packages $build_packages libmicrohttpd-dev dpkg-dev && \
    cmake --preset release -B /build && cmake --build /build && cd /build && cpack -G DEB

FROM debian:12-slim
COPY --from=build /build/dtsim_*.deb /tmp/
RUN apt-get update && apt-get install -y /tmp/dtsim_*.deb && rm -rf /tmp/dtsim_*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["dtsim"]
