# A worker of the compose stack whose scripts import torch. After `docker compose build`:
#   docker build -f deploy/docker/worker-torch.Dockerfile -t steadfast-worker-torch:dev deploy/docker
#   WORKER_IMAGE=steadfast-worker-torch:dev docker compose up
FROM steadfast:dev
USER root
# Scripts import more than the platform does, which has compiled no more than it imports itself.
RUN pip --python /opt/steadfast/bin/python install --no-cache-dir torch scikit-learn \
    && { /opt/steadfast/bin/python -m compileall -q -j 0 /opt/steadfast/lib >/dev/null || :; }
USER steadfast
