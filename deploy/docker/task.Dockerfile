# An image for tasks in containers: the packages that scripts import, and the SDK (docs/how-to/containers.md).
#   docker build -f deploy/docker/task.Dockerfile --build-arg PACKAGES="torch scikit-learn" -t steadfast/trial:cpu .
# Any image works that has a shell, and a `python3` that can import `determined`: add the two COPY lines and the RUN to your own.
FROM python:3.11-slim
ARG PACKAGES=""
COPY contracts /source/contracts
COPY sdk /source/sdk
RUN pip install --no-cache-dir /source/contracts /source/sdk $PACKAGES && rm -r /source
