# dbdyno in a container, from its wheel: make wheel, then docker build --tag dbdyno .
#
# For servers that already run: docker run --network host --volume "$PWD:/work" dbdyno compare experiment.toml
FROM python:3.13-slim
COPY dist /dist
RUN pip install --no-cache-dir /dist/*"$(uname -m)".whl && rm -r /dist
# Experiment files, scripts and results.
WORKDIR /work
ENTRYPOINT ["dbdyno"]
