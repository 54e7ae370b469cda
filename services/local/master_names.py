"""All settings in the configuration file of a 0.25 master, and their effect here.

A name is the path of a setting, with `[]` for each list element: `resource_pools[].pool_name`. An entry also
covers everything below its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

_TASKS = "task_container_defaults"
_POOLS = "resource_pools[]"
_CLOUDS = (
    "pools grow by Slurm, by Kubernetes or by processes of a host here: docs/guides/growing-pools.md; "
    "hosts of a cloud are joined by det deploy local agent-up"
)
SUPPORTED_PROVIDERS = ("slurm", "kubernetes", "process")
SUPPORTED_STORAGES = ("shared_fs", "directory", "s3", "gcs", "azure")

_SUPPORTED_TASKS = (
    "image force_pull_image registry_auth environment_variables add_capabilities drop_capabilities "
    "shm_size_bytes devices bind_mounts slurm pbs"
)
_SUPPORTED_SCHEDULER = "type fitting_policy allow_heterogeneous_fits preemption default_priority"
_SUPPORTED_PROVIDER = (
    "slots_per_instance min_instances max_instances max_idle_agent_period max_agent_starting_period "
    "notice_period slurm kubernetes process"
)
_SUPPORTED_STORAGE = (
    "host_path storage_path container_path bucket access_key secret_key endpoint_url prefix container "
    "connection_string account_url credential save_experiment_best save_trial_best save_trial_latest"
)


def _children(parent: str, names: str) -> Iterator[str]:
    return (f"{parent}.{name}" for name in names.split())


SUPPORTED: dict[str, str] = {
    "port": "where the gateway listens, unless --master-port says so",
    "cluster_name": "what the web UI calls the cluster",
    "log.level": "`STEADFAST_LOG_LEVEL` of all processes",
    "security.authz.type": "`STEADFAST_AUTHZ`: how rights are judged",
    "webhooks.base_url": "the address in the links of messages",
    "tensorboard_timeout": "seconds for which nobody may look at a TensorBoard that has no idle_timeout",
    "notebook_timeout": "seconds for which a notebook that has no idle_timeout may be idle",
    "checkpoint_storage.type": "shared_fs, directory, s3, gcs, azure; others have no effect and are reported",
    **dict.fromkeys(
        _children("checkpoint_storage", _SUPPORTED_STORAGE),
        "for experiments and workspaces that name no storage",
    ),
    "resource_manager.type": "agent; others have no effect and are reported",
    **dict.fromkeys(
        _children("resource_manager.scheduler", _SUPPORTED_SCHEDULER), "for pools that have none of their own"
    ),
    **dict.fromkeys(_children(_TASKS, _SUPPORTED_TASKS), "for pools that have none of their own"),
    f"{_POOLS}.pool_name": "as in docs/scheduling.md",
    f"{_POOLS}.description": "shown with the pool",
    f"{_POOLS}.max_aux_containers_per_agent": "zero-slot tasks on one worker",
    f"{_POOLS}.max_cpu_containers_per_agent": "the older name of max_aux_containers_per_agent",
    **dict.fromkeys(_children(f"{_POOLS}.scheduler", _SUPPORTED_SCHEDULER), "of this pool"),
    **dict.fromkeys(_children(f"{_POOLS}.{_TASKS}", _SUPPORTED_TASKS), "in place of those of the cluster"),
    f"{_POOLS}.provider.type": "slurm, kubernetes and process; others have no effect and are reported",
    **dict.fromkeys(_children(f"{_POOLS}.provider", _SUPPORTED_PROVIDER), "of a pool that grows"),
}
"""Setting -> its effect here."""

_UNUSED_TASKS = (
    ("network_mode", "a container has the network of its host"),
    (
        "dtrain_network_interface",
        "interfaces are chosen by NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME of a task",
    ),
    ("nccl_port_range gloo_port_range", "ports are free ones of the host"),
    (
        "cpu_pod_spec gpu_pod_spec",
        "tasks are processes of workers, not pods: the pod of a worker is the chart's",
    ),
    ("work_dir", "a task begins in a folder of its own, with the submitted files"),
    ("log_policies", "failures that a retry cannot fix are not retried, even without a policy"),
    ("preemption_timeout", "a preempted task has an hour to exit"),
)

_UNUSED: tuple[tuple[str, str], ...] = (
    ("config_file", "the file is the one that --master-config-path names"),
    ("root cache.cache_dir", "programs and data of a cluster are under STEADFAST_HOME"),
    ("launch_error", "a task that fits nowhere waits, with a warning when it is submitted"),
    ("reserved_ports", "tasks ask the system for free ports"),
    ("feature_switches", "nothing is hidden behind a switch"),
    ("enable_cors", "origins are named one by one: STEADFAST_ALLOWED_ORIGINS"),
    ("log.color", "while the cluster runs: det master config --log --color on"),
    (
        "db.user db.password db.host db.port db.name db.ssl_mode db.ssl_root_cert db.migrations",
        "each part of a local cluster keeps its own SQLite database; PostgreSQL: docs/growing.md",
    ),
    (
        "security.default_task.user security.default_task.uid security.default_task.group "
        "security.default_task.gid",
        "set by workers (STEADFAST_WORKER_RUN_AS) and by workspaces",
    ),
    (
        "security.tls.cert security.tls.key",
        "a local cluster creates its own certificates: start it with --tls",
    ),
    ("security.ssh.rsa_key_size", "keys of shells are Ed25519"),
    (
        "security.authz.fallback security.authz.rbac_ui_enabled security.authz.strict_job_queue_control "
        "security.authz.workspace_creator_assign_role",
        "rights follow from security.authz.type alone: docs/rights.md",
    ),
    ("webhooks.signing_key", "each webhook has its own key: docs/how-to/webhooks.md"),
    (
        "telemetry.enabled telemetry.segment_master_key telemetry.segment_webui_key",
        "no telemetry is sent",
    ),
    (
        "telemetry.otel-enabled telemetry.otel-endpoint",
        "traces go where OTEL_EXPORTER_OTLP_ENDPOINT says, over HTTP",
    ),
    ("observability.enable_prometheus", "Prometheus metrics are always served: docs/guides/operating.md"),
    ("logging", "task logs are stored in the cluster's log, without Elasticsearch"),
    ("scim", "accounts are created at the first sign-in: STEADFAST_OIDC_PROVISION"),
    ("saml", "users sign in with OpenID Connect: docs/guides/signing-in.md"),
    ("oidc", "the provider is set by the STEADFAST_OIDC_* variables: docs/guides/signing-in.md"),
    (
        "checkpoint_storage.propagation",
        "directories are those of the host; containers have them as bind_mounts say",
    ),
    (
        "resource_manager.default_aux_resource_pool resource_manager.default_compute_resource_pool "
        "resource_manager.default_cpu_resource_pool resource_manager.default_gpu_resource_pool",
        "workspaces have default pools: det workspace edit --default-compute-pool, --default-aux-pool",
    ),
    (
        "resource_manager.require_authentication resource_manager.client_ca",
        "a worker always proves who it is, by its credentials of the broker",
    ),
    (
        " ".join(
            _children(
                "resource_manager",
                "namespace max_slots_per_pod slot_type slot_resource_requests kubeconfig_path fluent "
                "master_service_name credsDir masterIp masterPort leave_kubernetes_resources",
            )
        ),
        "Kubernetes starts workers, which start tasks: docs/guides/kubernetes.md",
    ),
    (
        " ".join(
            _children(
                "resource_manager",
                "master_host master_port host port protocol security container_run_type auth_file "
                "rendezvous_network_interface proxy_network_interface user_name group_name "
                "singularity_image_root apptainer_image_root job_storage_root path ld_library_path "
                "tres_supported gres_supported launcher_image launcher_container_run_type launcher_jvm_args "
                "job_project_source sudo_authorized partition_overrides",
            )
        ),
        "Slurm starts workers, which start tasks, without a launcher: docs/guides/slurm.md",
    ),
    (
        f"{_POOLS}.agent_reconnect_wait",
        "it is one time for the cluster: STEADFAST_RECONNECT_WAIT_S of the scheduler",
    ),
    (f"{_POOLS}.agent_reattach_enabled", "running tasks are always reattached when their worker reconnects"),
    (f"{_POOLS}.kubernetes_namespace", "Kubernetes starts workers: docs/guides/kubernetes.md"),
    *(
        (" ".join(_children(parent, names)), why)
        for parent in (_TASKS, f"{_POOLS}.{_TASKS}")
        for names, why in _UNUSED_TASKS
    ),
    (
        " ".join(
            _children(
                f"{_POOLS}.provider",
                "master_url master_cert_name startup_script container_startup_script agent_docker_network "
                "agent_docker_runtime agent_docker_image agent_fluent_image agent_reconnect_attempts "
                "agent_reconnect_backoff launch_error_timeout launch_error_retries region root_volume_size "
                "image_id tag_key tag_value custom_tags instance_name ssh_key_name iam_instance_profile_arn "
                "network_interface instance_type cpu_slots_allowed spot spot_max_price base_config project "
                "zone boot_disk_size boot_disk_source_image label_key label_value name_prefix network_tags "
                "service_account operation_timeout_period partition",
            )
        ),
        _CLOUDS,
    ),
)

UNUSED: dict[str, str] = {name: why for names, why in _UNUSED for name in names.split()}
"""Setting -> why it has no effect here, and what to use instead."""
NO_SUCH_STORAGE = "supported: shared_fs, directory, s3, gcs and azure"
NO_SUCH_MANAGER = "workers hand out slots; Slurm and Kubernetes start workers: docs/guides/growing-pools.md"
NO_SUCH_PROVIDER = _CLOUDS
NO_SUCH_SETTING = "unknown setting: check its spelling"


def is_known(name: str) -> bool:
    """Whether it is a setting of 0.25, with or without an effect here."""
    return name in SUPPORTED or name in UNUSED


def why_unused(name: str) -> str:
    """Return why a setting has no effect here; empty if it has one."""
    return "" if name in SUPPORTED else UNUSED.get(name, NO_SUCH_SETTING)


def has_children(name: str) -> bool:
    """Whether settings exist below a name: it is a map or, with a trailing `[]`, a list element."""
    return any(setting.startswith((f"{name}.", f"{name}[]")) for setting in (*SUPPORTED, *UNUSED))


def suggest(name: str) -> str:
    """Suggest a known name similar to an unknown one; empty if there is none."""
    parent, _, last = name.rpartition(".")
    start = f"{parent}." if parent else ""
    siblings = {
        setting[len(start) :].partition(".")[0].removesuffix("[]")
        for setting in (*SUPPORTED, *UNUSED)
        if setting.startswith(start)
    }
    near = get_close_matches(last, sorted(siblings), n=1)
    return start + near[0] if near else ""
