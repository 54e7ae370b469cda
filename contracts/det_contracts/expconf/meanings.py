"""The meaning of each configuration field, for people who write configurations.

The reference documentation includes these texts. A field's name is its path with dots. Members of a union
whose fields mean the same share one text; `searcher[pbt].max_length` would be for `pbt` alone.
"""

from __future__ import annotations

from det_contracts.expconf import searcher

NOT_USED = "Accepted and stored so that existing configurations keep working; it has no effect here."

MEANINGS: dict[str, str] = {
    "name": "The name of the experiment in lists and on pages.",
    "description": "A sentence or two about the experiment, shown under its name.",
    "labels": "Tags for filtering lists.",
    "data": "Custom data for your script, which can read it as `det.get_cluster_info().user_data`.",
    "workspace": "The workspace of the project. Give both or neither.",
    "project": "The project that the experiment belongs to. The default is `Uncategorized`.",
    "entrypoint": (
        "The command that each trial runs in the context directory: a string for the shell, or a list of a program "
        "and its arguments. `model_def:MyTrial` names a trial class (see *launchers*)."
    ),
    "max_restarts": (
        "How many times each trial is restarted after a failure, from its latest checkpoint. A trial that "
        "fails again after that ends in state `ERROR`. Pauses, preemptions and lost workers do not count."
    ),
    "scheduling_unit": (
        "For trial classes: how many batches are trained between two checks whether the trial should pause, and "
        "between two reports of training metrics."
    ),
    "records_per_epoch": (
        "For code that reads it. The trainers take the length of an epoch from the data loader."
    ),
    "min_validation_period": "For trial classes: validate at least this often. 0 validates only when the search requires it.",
    "perform_initial_validation": "For trial classes: validate once before the first batch, but not after a resume.",
    "min_checkpoint_period": "For trial classes: save a checkpoint at least this often. 0 saves only when necessary.",
    "checkpoint_policy": (
        "For trial classes: after which validations a checkpoint is saved. `best`: if it is the best of the "
        "experiment so far; `all`: after every validation; `none`: never."
    ),
    "checkpoint_storage": (
        "Where checkpoints are stored, and how many are kept. Type `gcs` takes its credentials from the environment of the "
        "worker: GOOGLE_APPLICATION_CREDENTIALS, or the machine's service account."
    ),
    "checkpoint_storage.save_experiment_best": (
        "How many checkpoints with the best validations of the whole experiment are kept when it ends."
    ),
    "checkpoint_storage.save_trial_best": "How many checkpoints with the best validations of each trial are kept.",
    "checkpoint_storage.save_trial_latest": "How many of the latest checkpoints of each trial are kept.",
    "checkpoint_storage.bucket": "The bucket that holds the checkpoints.",
    "checkpoint_storage.prefix": "Prefix of object names in the bucket. Must not contain `..`.",
    "checkpoint_storage.access_key": "The access key. Without one the usual environment variables are used.",
    "checkpoint_storage.secret_key": "The secret key. It is encrypted in the log and masked wherever it is shown.",
    "checkpoint_storage.endpoint_url": "The address of an S3 service other than Amazon's, such as MinIO.",
    "checkpoint_storage.host_path": "A directory that every worker can access under the same path.",
    "checkpoint_storage.storage_path": "A directory below `host_path`, relative or absolute, that holds the checkpoints.",
    "checkpoint_storage.propagation": NOT_USED,
    "checkpoint_storage.checkpoint_path": NOT_USED,
    "checkpoint_storage.tensorboard_path": NOT_USED,
    "checkpoint_storage[shared_fs].container_path": NOT_USED,
    "checkpoint_storage[directory].container_path": "The absolute path of a directory that exists in every task.",
    "checkpoint_storage.container": "The container that holds the checkpoints.",
    "checkpoint_storage.connection_string": "The connection string of the storage account. It is encrypted in the log and masked wherever it is shown.",
    "checkpoint_storage.account_url": "The address of the storage account, `https://<account>.blob.core.windows.net`, instead of a connection string.",
    "checkpoint_storage.credential": "An account key or a shared access signature for `account_url`. Without it the environment and managed identity of the worker are used.",
    "hyperparameters": (
        "The values that the search varies, and constants. See *Hyperparameters* below for what a "
        "value can be."
    ),
    "searcher": "The search method, which decides what trials are created and how long each trains.",
    **{f"searcher.{field}": meaning for field, meaning in searcher.MEANINGS.items()},
    "resources": "The resources of a trial.",
    "resources.slots_per_trial": (
        "How many slots (GPUs, or shares of the CPU) each trial holds. With 0 a trial runs without a slot, next to tasks that hold slots."
    ),
    "resources.max_slots": "The maximum number of slots for all trials of the experiment together.",
    "resources.resource_pool": "The pool whose workers run the trials. Default: the cluster's default pool.",
    "resources.priority": (
        "1 to 99 in pools that schedule by priority; smaller numbers run first. Default: the pool's default."
    ),
    "resources.weight": "The share in pools that schedule by fair share.",
    "resources.slots": "For commands and TensorBoards: how many slots the task holds. Trials ignore it.",
    "resources.shm_size": "Shared memory of a task in a container, such as `8g`. Default: 4 GiB.",
    "resources.devices": NOT_USED,
    "resources.devices.host_path": NOT_USED,
    "resources.devices.container_path": NOT_USED,
    "resources.devices.mode": NOT_USED,
    "resources.native_parallel": NOT_USED,
    "resources.agent_label": NOT_USED,
    "reproducibility": "Settings that make a search reproducible.",
    "reproducibility.experiment_seed": ("The seed of the search; each trial's seed is derived from it."),
    "environment": "The environment of the entrypoint.",
    "environment.environment_variables": (
        "Variables for the tasks: a map of names to values, a list of `NAME=VALUE`, or one such list for each of "
        "`cpu`, `cuda` and `rocm`. Variables whose names look like secrets are encrypted in the log and masked when shown."
    ),
    "environment.environment_variables.cpu": "Variables on workers without an accelerator.",
    "environment.environment_variables.cuda": "Variables on workers with NVIDIA GPUs.",
    "environment.environment_variables.rocm": "Variables on workers with AMD GPUs.",
    "environment.image": "The container image: one for all devices, or one for each kind. Workers that start plain processes ignore it, and say so.",
    "environment.image.cpu": "The image on workers without an accelerator.",
    "environment.image.cuda": "The image on workers with NVIDIA GPUs.",
    "environment.image.rocm": NOT_USED,
    "environment.force_pull_image": "Ask the registry before each run, even if the image is on the host.",
    "environment.registry_auth": "Credentials for the image's registry. Encrypted in the log, masked when shown.",
    "environment.registry_auth.username": "The user name.",
    "environment.registry_auth.email": NOT_USED,
    "environment.registry_auth.serveraddress": "The registry that the credentials are for. Default: the registry of the image.",
    "environment.registry_auth.password": "The password or token.",
    "environment.registry_auth.auth": "`username:password` in base64, instead of both.",
    "environment.registry_auth.identitytoken": "A token that the registry exchanges for others.",
    "environment.registry_auth.registrytoken": "A token that is sent to the registry unchanged.",
    "environment.ports": "Names and ports of a containerized task that are published on its host, unless it uses the host's network.",
    "environment.proxy_ports": NOT_USED,
    "environment.proxy_ports.proxy_port": NOT_USED,
    "environment.proxy_ports.proxy_tcp": NOT_USED,
    "environment.proxy_ports.unauthenticated": NOT_USED,
    "environment.proxy_ports.default_service_id": NOT_USED,
    "environment.add_capabilities": "Linux capabilities to add to a containerized task, if its worker allows them.",
    "environment.drop_capabilities": "Linux capabilities to remove from a containerized task.",
    "environment.pod_spec": NOT_USED,
    "environment.warm": "`false` starts a fresh interpreter for each run instead of a warm one (docs/guides/warm-starts.md).",
    "bind_mounts": "Host directories to mount into a containerized task, if its worker allows them. Plain processes see the host's file system unchanged.",
    "bind_mounts.host_path": "The directory on the worker's host.",
    "bind_mounts.container_path": "The path in the container. A relative path starts at the working directory.",
    "bind_mounts.read_only": "Whether the mount is read-only.",
    "bind_mounts.propagation": "Propagation of mounts below it, as in Docker.",
    "profiling": "Measure the trial's resource use: CPU, memory, GPU, throughput, and timings of the loop.",
    "profiling.enabled": "Whether to measure.",
    "profiling.begin_on_batch": "The first batch that is measured.",
    "profiling.end_after_batch": "The last batch that is measured. Default: until the end.",
    "profiling.sync_timings": "Wait for the GPU before each timing, which makes timings accurate but the loop slower.",
    "optimizations": "Settings of distributed training with trial classes.",
    "optimizations.aggregation_frequency": "How many batches are accumulated before each step of the optimizer.",
    "optimizations.average_aggregated_gradients": "Divide accumulated gradients by the number of batches.",
    "optimizations.average_training_metrics": "Accepted, but training metrics are always averaged over all ranks.",
    "optimizations.tensor_fusion_threshold": "Passed to Horovod: the size in MiB of its fusion buffer.",
    "optimizations.tensor_fusion_cycle_time": "Passed to Horovod: its cycle time in milliseconds.",
    "optimizations.auto_tune_tensor_fusion": "Passed to Horovod: let it tune both automatically.",
    "optimizations.gradient_compression": NOT_USED,
    "optimizations.grad_updates_size_file": NOT_USED,
    "optimizations.mixed_precision": NOT_USED,
    "debug": "Enable detailed logging of the SDK in the script.",
    "log_policies": NOT_USED,
    "log_policies.pattern": NOT_USED,
    "log_policies.action": NOT_USED,
    "log_policies.action.type": NOT_USED,
    "slurm": NOT_USED,
    "slurm.slots_per_node": NOT_USED,
    "slurm.gpu_type": NOT_USED,
    "slurm.sbatch_args": NOT_USED,
    "pbs": NOT_USED,
    "pbs.slots_per_node": NOT_USED,
    "pbs.pbsbatch_args": NOT_USED,
    "security": NOT_USED,
    "security.kerberos": NOT_USED,
    "security.kerberos.config_file": NOT_USED,
    "tensorboard_storage": NOT_USED,
    "data_layer": NOT_USED,
    "internal": "Must be null.",
}
