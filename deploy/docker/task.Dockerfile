# An image for tasks in containers: what scripts import, and the SDK beside it (docs/how-to/containers.md).
#   docker build -f deploy/docker/task.Dockerfile --build-arg PACKAGES="torch scikit-learn" -t steadfast/trial:cpu .
# Any image will do that has a shell, and a `python3` that imports `determined`: add the two COPY lines and the RUN to your own.
FROM python:3.11-slim
ARG PACKAGES=""
COPY contracts /source/contracts
COPY sdk /source/sdk
RUN pip install --no-cache-dir /source/contracts /source/sdk $PACKAGES && rm -r /source
