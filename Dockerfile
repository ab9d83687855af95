# Placewright in a container: built in one stage, run in another that has neither compiler nor pip's cache, as nobody in particular.
# `development` is for `tilt up` alone: its user may replace the code.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/placewright
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY operator operator
# `--build-arg EXTRAS=fast,lab` makes an image for the commands of the lab: manifests/examples/tuning runs one.
ARG EXTRAS=fast,otel
RUN /opt/placewright/bin/pip install --no-cache-dir --disable-pip-version-check ".[${EXTRAS}]" \
    && /opt/placewright/bin/python -m compileall -q /opt/placewright/lib

FROM build AS development
RUN chown -R 65532:65532 /opt/placewright
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /opt/placewright
USER 65532:65532
ENTRYPOINT ["/opt/placewright/bin/placewright"]
CMD ["run"]

FROM python:3.13-slim
LABEL org.opencontainers.image.title="Placewright" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/placewright /opt/placewright
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
WORKDIR /tmp
USER 65532:65532
ENTRYPOINT ["/opt/placewright/bin/placewright"]
CMD ["run"]
