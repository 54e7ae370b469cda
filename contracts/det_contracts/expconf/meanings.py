"""What each field of the configuration means, in words for the people who write one.

The reference of the documentation shows these texts. A field's name is its path with dots; members of a union
whose fields mean the same share one text, `searcher[pbt].max_length` would be one for `pbt` alone.
"""

from __future__ import annotations

NOT_USED = "Accepted and stored so that existing configurations keep working; it has no effect here."

MEANINGS: dict[str, str] = {
    "name": "What lists and pages call the experiment.",
    "description": "A sentence or two about the experiment, shown under its name.",
    "labels": "Tags to filter lists by.",
    "data": "Free data for your script, which reads it as `det.get_cluster_info().user_data`.",
    "workspace": "The workspace of the project. Give both or neither.",
    "project": "The project that the experiment belongs to. Without one it is `Uncategorized`.",
    "entrypoint": (
        "The command that each trial runs in the context directory: a string for the shell, or a list of a program "
        "and its arguments. `model_def:MyTrial` names a trial class (see *launchers*)."
    ),
    "max_restarts": (
        "How many times each trial is started again after a failure, from its latest checkpoint. The trial that "
        "fails once more has the state `ERROR`. Pauses, preemptions and lost workers do not count."
    ),
    "scheduling_unit": (
        "For trial classes: how many batches are trained between two looks at whether the trial is to pause, and "
        "between two reports of training metrics."
    ),
    "records_per_epoch": (
        "For code that reads it. The trainers here know the length of an epoch from the data loader."
    ),
    "min_validation_period": "For trial classes: validate at least this often. 0 validates where the search asks only.",
    "perform_initial_validation": "For trial classes: validate once before the first batch; not after a resume.",
    "min_checkpoint_period": "For trial classes: save a checkpoint at least this often. 0 saves where it is needed only.",
    "checkpoint_policy": (
        "For trial classes: after which validations a checkpoint is saved. `best`: when it is the best of the "
        "experiment so far; `all`: after each; `none`: after none."
    ),
    "checkpoint_storage": (
        "Where checkpoints are stored, and how many are kept. The types `gcs` and `azure` are read as in 0.25, and refused "
        "when something is submitted: Google Cloud is reached by `s3` with an `endpoint_url`."
    ),
    "checkpoint_storage.save_experiment_best": (
        "How many checkpoints with the best validations of the whole experiment are kept when it ends."
    ),
    "checkpoint_storage.save_trial_best": "How many checkpoints with the best validations of each trial are kept.",
    "checkpoint_storage.save_trial_latest": "How many of the newest checkpoints of each trial are kept.",
    "checkpoint_storage.bucket": "The bucket that holds the checkpoints.",
    "checkpoint_storage.prefix": "What each object's name in the bucket starts with. Must not climb out with `..`.",
    "checkpoint_storage.access_key": "The access key. Without one the usual variables of the environment are used.",
    "checkpoint_storage.secret_key": "The secret key. It is sealed in the log, and masked wherever it is shown.",
    "checkpoint_storage.endpoint_url": "The address of an S3 service other than Amazon's, such as MinIO.",
    "checkpoint_storage.host_path": "A directory that every worker sees under the same path.",
    "checkpoint_storage.storage_path": "A directory below `host_path`, relative or absolute, that holds the checkpoints.",
    "checkpoint_storage.propagation": NOT_USED,
    "checkpoint_storage.checkpoint_path": NOT_USED,
    "checkpoint_storage.tensorboard_path": NOT_USED,
    "checkpoint_storage[shared_fs].container_path": NOT_USED,
    "checkpoint_storage[directory].container_path": "An absolute path of a directory that exists in every task.",
    "checkpoint_storage.container": "The container that holds the checkpoints.",
    "checkpoint_storage.connection_string": "The connection string of the storage account.",
    "checkpoint_storage.account_url": "The address of the storage account, in place of a connection string.",
    "checkpoint_storage.credential": "The credential that goes with `account_url`.",
    "hyperparameters": (
        "The values that the search varies, and constants beside them. See *Hyperparameters* below for what a "
        "value can be."
    ),
    "searcher": "The search method: which trials there are, and how long each trains.",
    "searcher.metric": "The validation metric by which trials are compared.",
    "searcher.smaller_is_better": "Whether a smaller value of the metric is the better one.",
    "searcher.source_trial_id": "Every trial starts from the latest checkpoint of this trial, at step 0.",
    "searcher.source_checkpoint_uuid": "Every trial starts from this checkpoint, at step 0.",
    "searcher.max_length": (
        "How long a trial trains at most: `batches`, `records` or `epochs`, or a bare number that only your script "
        "interprets. Trial classes need a unit."
    ),
    "searcher.max_trials": "How many trials the search creates in all.",
    "searcher.max_concurrent_trials": "How many trials may train at the same time. 0 means as many as slots allow.",
    "searcher.num_rungs": "How many rungs there are: lengths at which trials are compared and the worse ones end.",
    "searcher.max_rungs": "At most this many rungs, in the bracket that has the most.",
    "searcher.divisor": "One of this many trials goes on from each rung; each rung is this many times as long.",
    "searcher.mode": (
        "Which brackets run side by side: `aggressive` the strictest only, `standard` the stricter half, `conservative` all, down to one that stops no trial."
    ),
    "searcher.bracket_rungs": "The number of rungs of each bracket, in place of what `mode` and `max_rungs` choose.",
    "searcher.stop_once": (
        "`false`: a trial that is not among the best of its rung waits and may go on later. `true`: it is stopped for good."
    ),
    "searcher.unit": "The unit of lengths that your own search method counts in. See *custom search*.",
    "searcher.num_startup_trials": "How many trials are drawn at random before the model of good values is used.",
    "searcher.rungs": "Ends bad trials early on a ladder of rungs as `adaptive_asha` does. Without it each trial trains to the end.",
    "searcher.rungs.max_rungs": "At most this many rungs.",
    "searcher.rungs.divisor": "One of this many trials goes on from each rung.",
    "searcher.rungs.stop_once": ("As for `adaptive_asha`."),
    "searcher.population_size": "How many trials there are in each round.",
    "searcher.num_rounds": "How many rounds `max_length` is divided into; between two, bad trials are replaced.",
    "searcher.replace_function": "Which trials are replaced after a round.",
    "searcher.replace_function.truncate_fraction": "This share of the population, the worst, is replaced by copies of the best.",
    "searcher.explore_function": "How the copies' hyperparameters are changed.",
    "searcher.explore_function.resample_probability": "The probability that a value is drawn again at random.",
    "searcher.explore_function.perturb_factor": "Other values are multiplied by one plus or one minus this factor.",
    "resources": "What a trial runs on.",
    "resources.slots_per_trial": (
        "How many slots (GPUs, or shares of the CPU) each trial holds. 0 runs without a slot, beside what holds one."
    ),
    "resources.max_slots": "At most this many slots for all trials of the experiment together.",
    "resources.resource_pool": "The pool whose workers run the trials. The cluster's default pool when it is left out.",
    "resources.priority": (
        "1 to 99 in pools that schedule by priority; smaller goes first. The pool's default when it is left out."
        ""
    ),
    "resources.weight": "The share in pools that schedule by fair share.",
    "resources.slots": "For commands and TensorBoards: how many slots the task holds. Trials ignore it.",
    "resources.shm_size": "Shared memory of a task in a container, such as `8g`; 4 GiB when it is left out.",
    "resources.devices": NOT_USED,
    "resources.devices.host_path": NOT_USED,
    "resources.devices.container_path": NOT_USED,
    "resources.devices.mode": NOT_USED,
    "resources.native_parallel": NOT_USED,
    "resources.agent_label": NOT_USED,
    "reproducibility": "What makes a search repeatable.",
    "reproducibility.experiment_seed": ("The seed of the search; each trial's own seed is drawn from it."),
    "environment": "What surrounds the entrypoint.",
    "environment.environment_variables": (
        "Variables for the tasks: a map of names to values, a list of `NAME=VALUE`, or one such list for each of "
        "`cpu`, `cuda` and `rocm`. Names that look like secrets are sealed in the log and masked when shown."
    ),
    "environment.environment_variables.cpu": "Variables on workers without an accelerator.",
    "environment.environment_variables.cuda": "Variables on workers with NVIDIA GPUs.",
    "environment.environment_variables.rocm": "Variables on workers with AMD GPUs.",
    "environment.image": "The container image, one for all or one for each kind of device. Workers that start plain processes do not use it, and say so.",
    "environment.image.cpu": "The image on workers without an accelerator.",
    "environment.image.cuda": "The image on workers with NVIDIA GPUs.",
    "environment.image.rocm": NOT_USED,
    "environment.force_pull_image": "Ask the registry before each run, though the image is on the host.",
    "environment.registry_auth": "Credentials of the image's registry. Sealed in the log, masked when shown.",
    "environment.registry_auth.username": "Who asks.",
    "environment.registry_auth.email": NOT_USED,
    "environment.registry_auth.serveraddress": "The registry that they are for; that of the image when it is left out.",
    "environment.registry_auth.password": "The password or token.",
    "environment.registry_auth.auth": "`username:password` in base64, in place of both.",
    "environment.registry_auth.identitytoken": "A token by which the registry gives others.",
    "environment.registry_auth.registrytoken": "A token that is sent to the registry as it is.",
    "environment.ports": "Names and ports of a task in a container that are published on its host, where it has not the host's network.",
    "environment.proxy_ports": NOT_USED,
    "environment.proxy_ports.proxy_port": NOT_USED,
    "environment.proxy_ports.proxy_tcp": NOT_USED,
    "environment.proxy_ports.unauthenticated": NOT_USED,
    "environment.proxy_ports.default_service_id": NOT_USED,
    "environment.add_capabilities": "Linux capabilities of a task in a container, of those that its worker allows.",
    "environment.drop_capabilities": "Linux capabilities that a task in a container does without.",
    "environment.pod_spec": NOT_USED,
    "environment.warm": "`false` starts a new interpreter for each run, as if none had run before (docs/guides/warm-starts.md).",
    "bind_mounts": "Directories of the host for a task in a container, of those that its worker allows. Plain processes see the host's file system as it is.",
    "bind_mounts.host_path": "The directory on the worker's host.",
    "bind_mounts.container_path": "Where the container has it; a relative path begins in the working directory.",
    "bind_mounts.read_only": "Whether the task may only read it.",
    "bind_mounts.propagation": "How mounts below it are passed on, as Docker has it.",
    "profiling": "Measure what the trial does to its host: CPU, memory, GPU, throughput, and timings of the loop.",
    "profiling.enabled": "Whether to measure.",
    "profiling.begin_on_batch": "The first batch that is measured.",
    "profiling.end_after_batch": "The last batch that is measured. To the end when it is left out.",
    "profiling.sync_timings": "Wait for the GPU before each timing, which makes timings true and the loop slower.",
    "optimizations": "Settings of distributed training with trial classes.",
    "optimizations.aggregation_frequency": "How many batches are accumulated before each step of the optimizer.",
    "optimizations.average_aggregated_gradients": "Divide accumulated gradients by the number of batches.",
    "optimizations.average_training_metrics": "Accepted. Training metrics are averaged over all ranks in any case.",
    "optimizations.tensor_fusion_threshold": "Passed to Horovod: the size in MiB of its fusion buffer.",
    "optimizations.tensor_fusion_cycle_time": "Passed to Horovod: its cycle time in milliseconds.",
    "optimizations.auto_tune_tensor_fusion": "Passed to Horovod: let it tune both by itself.",
    "optimizations.gradient_compression": NOT_USED,
    "optimizations.grad_updates_size_file": NOT_USED,
    "optimizations.mixed_precision": NOT_USED,
    "debug": "Make the SDK in the script log in detail.",
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
