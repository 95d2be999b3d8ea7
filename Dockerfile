# dbdyno in a container, from its wheel: make wheel, then docker build --tag dbdyno .
#
# For servers that already run: docker run --network host --volume "$PWD:/work" dbdyno compare experiment.toml
# Another base needs python3 with venv: --build-arg BASE=debian-with-python
ARG BASE=python:3.13-slim
FROM $BASE
COPY dist /dist
RUN python3 -m venv /opt/dbdyno && /opt/dbdyno/bin/pip install --no-cache-dir /dist/dbdyno-*"$(uname -m)".whl && rm -r /dist
ENV PATH=/opt/dbdyno/bin:$PATH
# Experiment files, scripts and results.
WORKDIR /work
ENTRYPOINT ["dbdyno"]
