# Placewright in a container: built in one stage, run in another that has neither compiler nor pip's cache, as nobody in particular.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/placewright
COPY pyproject.toml README.md LICENSE ./
COPY crds crds
COPY operator operator
RUN /opt/placewright/bin/pip install --no-cache-dir --disable-pip-version-check '.[fast]'

FROM python:3.13-slim
COPY --from=build /opt/placewright /opt/placewright
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
USER 65532:65532
ENTRYPOINT ["/opt/placewright/bin/placewright"]
CMD ["run"]
