# A user's image: the oldest Ray that worker groups run on, nothing of ours, root, and a PYTHONPATH of its own
# with a sitecustomize that prints.
ARG BASE_IMAGE=python:3.11-slim-bookworm
FROM ${BASE_IMAGE}

COPY requirements/oldest-ray.lock /tmp/
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/oldest-ray.lock
COPY tests/cluster/images/house_rules.py tests/cluster/images/sitecustomize.py /srv/house/
ENV PYTHONPATH=/srv/house
