# A Ray of the time before token authentication.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

COPY requirements/too-old-ray.lock /tmp/
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/too-old-ray.lock
