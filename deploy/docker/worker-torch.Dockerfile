# A worker of the compose stack whose scripts import torch. After `docker compose build`:
#   docker build -f deploy/docker/worker-torch.Dockerfile -t steadfast-worker-torch:dev deploy/docker
#   WORKER_IMAGE=steadfast-worker-torch:dev docker compose up
FROM steadfast:dev
USER root
RUN pip --python /opt/steadfast/bin/python install --no-cache-dir torch scikit-learn
USER steadfast
