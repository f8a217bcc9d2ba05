# The command line in a small image, without root: docker build -t plaudit . && docker run --rm plaudit --help
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN python -m venv /opt/plaudit \
    && /opt/plaudit/bin/pip install --no-cache-dir --no-compile -c constraints.txt .

FROM python:3.12-slim
COPY --from=build /opt/plaudit /opt/plaudit
RUN useradd --create-home --uid 10001 plaudit && install -d -o plaudit -g plaudit -m 0700 /data
USER plaudit
WORKDIR /data
# Verdicts live in /data: mount a volume there to keep them between runs.
ENV PATH=/opt/plaudit/bin:$PATH PLAUDIT_HOME=/data/plaudit PYTHONUNBUFFERED=1
ENTRYPOINT ["plaudit"]
CMD ["--help"]
