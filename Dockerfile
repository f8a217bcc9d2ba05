# The command line and the server in a small image, without root:
#     docker build -t plaudit . && docker run --rm plaudit --help
# Extras are added with --build-arg 'EXTRAS=[data,yaml]'.
FROM python:3.13-slim AS build
ARG EXTRAS=""
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src ./src
RUN python -m venv --without-pip /opt/plaudit \
    && python -m pip --python /opt/plaudit/bin/python install --no-cache-dir -c constraints.txt ".$EXTRAS" \
    && touch /opt/plaudit/image

FROM python:3.13-slim
ARG EXTRAS=""
# llama.cpp, of the extra local, needs OpenMP.
RUN case "$EXTRAS" in *local*) apt-get update && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* ;; esac
COPY --from=build /opt/plaudit /opt/plaudit
RUN useradd --create-home --uid 10001 plaudit && install -d -o plaudit -g plaudit -m 0700 /data
USER plaudit
WORKDIR /data
# Verdicts live in /data: mount a volume there to keep them between runs.
ENV PATH=/opt/plaudit/bin:$PATH PLAUDIT_HOME=/data/plaudit PYTHONUNBUFFERED=1
# Healthy is a server that answers, and any other command while it runs.
HEALTHCHECK --start-period=30s --timeout=5s CMD ["python", "-c", "import http.client, os, sys\n\
if 'serve' not in open('/proc/1/cmdline').read().split(chr(0)): sys.exit()\n\
server = http.client.HTTPConnection('127.0.0.1', 8400, timeout=4)\n\
server.request('GET', '/health', headers={'Authorization': 'Bearer ' + os.environ.get('PLAUDIT_TOKEN', '')})\n\
sys.exit(server.getresponse().status != 200)"]
ENTRYPOINT ["plaudit"]
CMD ["--help"]
