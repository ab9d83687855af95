# Placewright in a container: built in one stage, run in another that has neither compiler nor pip's cache, as nobody in particular.
# `development` is for `tilt up` alone: its user may replace the code.
# What pip installs is pinned by digest, in operator/requirements (`python .ci/lock`). The image below is named by its tag: whoever builds for production
# says which they mean, `--build-arg PYTHON_IMAGE=python:3.14-slim@sha256:...` (docs/security.md).
ARG PYTHON_IMAGE=python:3.14-slim
FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
RUN python -m venv /opt/placewright && python -m venv /opt/build
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY operator operator
COPY console console
COPY lab lab
COPY examples examples
# `--build-arg EXTRAS=fast,lab` makes an image that has the commands of lab/, too: manifests/examples/tuning runs one.
ARG EXTRAS=fast,otel
# `--build-arg PLUGINS=legacy-plugins` adds the plugins of examples/legacy-plugins; several folders are separated by spaces.
ARG PLUGINS=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN /opt/placewright/bin/pip install --require-hashes --only-binary :all: -r "operator/requirements/${EXTRAS}.txt" \
    && /opt/build/bin/pip install --require-hashes --only-binary :all: -r operator/requirements/build.txt \
    && /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheels . ./console \
    && case ",${EXTRAS}," in *,lab,*) /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheels ./lab ;; esac \
    && for plugins in ${PLUGINS}; do \
         /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/build/wheels "./examples/${plugins}" || exit; \
       done \
    && /opt/placewright/bin/pip install --no-deps --no-index /opt/build/wheels/*.whl \
    && /opt/placewright/bin/python -m compileall -q /opt/placewright/lib

FROM build AS development
RUN chown -R 65532:65532 /opt/placewright
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /opt/placewright
USER 65532:65532
ENTRYPOINT ["/opt/placewright/bin/placewright"]
CMD ["run"]

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="Placewright" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/placewright /opt/placewright
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["/opt/placewright/bin/placewright"]
CMD ["run"]
