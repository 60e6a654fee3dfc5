"""What is rendered for the ``scaled`` tier."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.errors import UnsupportedError
from infra.kubernetes import files, names, versions
from infra.kubernetes import render as rendering
from infra.kubernetes.inputs import FileSystem, Object
from infra.kubernetes.versions import Images

from .conftest import HUB, Render, Rendered

LUSTRE = FileSystem(
    id="fs-0123456789abcdef0",
    dns_name="fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
    mount_name="abcdefgh",
    capacity_gib=1200,
)


def pods(made: Rendered) -> list[Object]:
    """Every pod template that is rendered."""
    found = [
        one["spec"]["template"]
        for one in made.objects
        if one["kind"] in ("DaemonSet", "Deployment")
    ]
    found.append(made.ray["headGroupSpec"]["template"])
    found.append(made.workers["template"])
    return found


def containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def serve_config(made: Rendered) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(made.one("RayService")["spec"]["serveConfigV2"])
    return config


# --- the fleet


def test_one_worker_takes_a_whole_p4d(render: Render) -> None:
    made = render()
    resources = made.worker["resources"]
    assert resources["requests"] == resources["limits"]
    limits = dict(resources["limits"])
    assert limits.pop("nvidia.com/gpu") == "8"
    assert limits.pop("vpc.amazonaws.com/efa") == "4"
    assert limits.pop("hugepages-2Mi") == "5120Mi"
    assert limits == {"cpu": "92", "memory": "1018Gi"}
    spec = made.workers["template"]["spec"]
    assert spec["nodeSelector"]["specrack/pool"] == "gpu"
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]


def test_replicas_pods_and_nodes_have_the_same_limits(render: Render) -> None:
    made = render(fleet={"nodes": {"min": 2, "max": 3}})
    group = made.workers
    assert (group["minReplicas"], group["replicas"], group["maxReplicas"]) == (2, 2, 3)
    (engine,) = serve_config(made)["applications"][0]["deployments"]
    scaling = engine["autoscaling_config"]
    assert (scaling["min_replicas"], scaling["max_replicas"]) == (2, 3)
    assert engine["ray_actor_options"]["num_gpus"] == 8
    assert engine["max_replicas_per_node"] == 1


def test_more_nodes_are_asked_for_before_the_nodes_are_full(render: Render) -> None:
    made = render(**{"load.sessions": 100})
    (engine,) = serve_config(made)["applications"][0]["deployments"]
    assert engine["max_ongoing_requests"] == 25  # 100 sessions on four nodes
    assert engine["autoscaling_config"]["target_ongoing_requests"] == 20
    assert engine["max_queued_requests"] == 100
    # What the engine itself takes at once, and what Serve hands it, are the same.
    command = made.plan.services[0].command
    assert command[command.index("--max_batch_size") + 1] == "25"


def test_the_head_keeps_the_books_on_a_cpu_node(render: Render) -> None:
    head = render().ray["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert head["template"]["spec"]["nodeSelector"] == {"specrack/pool": "system"}


def test_rays_own_autoscaler_is_on_and_asks_for_a_token(render: Render) -> None:
    ray = render().ray
    assert ray["enableInTreeAutoscaling"] is True
    assert ray["autoscalerOptions"]["version"] == "v2"
    assert ray["autoscalerOptions"]["idleTimeoutSeconds"] == 120
    assert ray["authOptions"] == {"mode": "token"}


def test_a_fixed_fleet_needs_no_cluster_autoscaler(render: Render) -> None:
    assert "cluster-autoscaler" not in render(fleet={"nodes": {"min": 2, "max": 2}}).names(
        "Deployment"
    )


def test_the_cluster_autoscaler_is_the_clusters_version_and_finds_its_group(
    render: Render,
) -> None:
    made = render(cluster={"autoscaler_role_arn": "arn:aws:iam::123456789012:role/a"})
    (container,) = made.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith(":v1.35.1")
    assert any("k8s.io/cluster-autoscaler/chat-scaled" in word for word in container["command"])
    account = made.one("ServiceAccount", "cluster-autoscaler")
    assert account["metadata"]["annotations"] == {
        "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/a"
    }
    with pytest.raises(UnsupportedError, match=r"no pinned Cluster Autoscaler.* 1\.29"):
        render(cluster={"kubernetes": "1.29"})


@pytest.mark.parametrize(
    ("nodes", "upgrade"), [((2, 4), "NewCluster"), ((2, 3), "None"), ((3, 4), "None")]
)
def test_a_second_cluster_beside_the_first_is_made_where_both_fit(
    render: Render, nodes: tuple[int, int], upgrade: str
) -> None:
    made = render(fleet={"nodes": {"min": nodes[0], "max": nodes[1]}})
    assert made.one("RayService")["spec"]["upgradeStrategy"] == {"type": upgrade}


@pytest.mark.parametrize(
    ("instance", "efa", "gpus"),
    [
        ("p4de.24xlarge", "4", "8"),
        ("p5.48xlarge", "32", "8"),
        ("p5en.48xlarge", "16", "8"),
        ("p6-b200.48xlarge", "8", "8"),
        ("g6e.48xlarge", "4", "8"),
        ("g5.12xlarge", "1", "4"),
    ],
)
def test_other_machines_are_data(render: Render, instance: str, efa: str, gpus: str) -> None:
    made = render(fleet={"instance": instance})
    limits = made.worker["resources"]["limits"]
    assert limits["vpc.amazonaws.com/efa"] == efa
    assert limits["nvidia.com/gpu"] == gpus
    selector = made.workers["template"]["spec"]["nodeSelector"]
    assert selector["node.kubernetes.io/instance-type"] == instance


def test_trainium_gets_the_neuron_plugin_in_place_of_nvidias(render: Render) -> None:
    made = render(fleet={"instance": "trn2.48xlarge"})
    assert made.names("DaemonSet") == ["neuron-device-plugin", "efa-device-plugin"]
    assert made.worker["resources"]["limits"]["aws.amazon.com/neuron"] == "16"
    assert made.workers["resources"]["specrack_node"] == "1"
    (engine,) = serve_config(made)["applications"][0]["deployments"]
    assert engine["ray_actor_options"] == {"num_cpus": 1, "resources": {"specrack_node": 1}}
    assert made.workers["template"]["spec"]["tolerations"][0]["key"] == "aws.amazon.com/neuron"


def test_a_tier_without_a_cluster_has_no_objects(render: Render) -> None:
    with pytest.raises(UnsupportedError, match="has no Kubernetes cluster"):
        render(tier="prototype", **{"serving.engine": "vllm", "fleet": {"instance": "g5.12xlarge"}})


# --- images


def test_every_image_has_a_tag_and_none_floats(render: Render) -> None:
    weights = {"aws.weights": {"bucket": "my-models"}}
    for made in (render(**weights), render(fleet={"instance": "trn2.48xlarge"})):
        for pod in pods(made):
            for container in containers(pod):
                name, _, tag = container["image"].rpartition(":")
                assert "/" in name, container["image"]
                assert tag
                assert tag not in ("latest", "nightly")


def test_the_engine_is_the_plans_version(render: Render) -> None:
    assert render().worker["image"] == "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"
    vllm = render(**{"serving.engine": "vllm"})
    assert vllm.worker["image"] == "vllm/vllm-openai:v0.33.0"


def test_ray_is_installed_from_the_lock_file_unless_the_image_has_it(render: Render) -> None:
    made = render()
    (install,) = made.workers["template"]["spec"]["initContainers"]
    assert "--require-hashes" in install["command"][2]
    assert (
        f"ray=={versions.RAY}"
        in made.one("ConfigMap", made_name(made, "ray"))["data"][files.LOCK_NAME]
    )
    own = render(cluster={"images": Images(engine="registry.example/own:1", engine_has_ray=True)})
    assert own.workers["template"]["spec"]["initContainers"] == []
    assert own.worker["image"] == "registry.example/own:1"


def made_name(made: Rendered, what: str) -> str:
    (name,) = [name for name in made.names("ConfigMap") if name.startswith(f"{what}-")]
    return name


# --- weights and tokens


def test_weights_from_lustre_are_a_volume_that_exists_and_is_only_read(render: Render) -> None:
    made = render(cluster={"file_system": LUSTRE})
    volume, claim = made.one("PersistentVolume"), made.one("PersistentVolumeClaim")
    source = volume["spec"]["csi"]
    assert source["driver"] == "fsx.csi.aws.com"
    assert source["volumeHandle"] == LUSTRE.id
    assert source["volumeAttributes"] == {
        "dnsname": LUSTRE.dns_name,
        "mountname": LUSTRE.mount_name,
    }
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert {"name": "weights", "mountPath": "/srv/specrack/models", "readOnly": True} in (
        made.worker["volumeMounts"]
    )


def test_weights_from_a_bucket_are_copied_before_the_engine_starts(render: Render) -> None:
    changes = {
        "aws.weights": {"bucket": "my-models", "prefix": "llama/"},
        "model.target": "models/llama-70b",
        "model.draft": "models/llama-1b",
    }
    made = render(**changes)
    weights, _ray = made.workers["template"]["spec"]["initContainers"]
    assert weights["command"][-2:] == ["s3://my-models/llama/", "/srv/specrack/models"]
    # The engine looks for its model where the copy went.
    assert "/srv/specrack/models/llama-70b" in made.plan.services[0].command
    assert made.names("PersistentVolume") == []


def test_the_hubs_token_is_named_and_never_there(render: Render) -> None:
    made = render(**{"aws.hub_secret": HUB})
    (token,) = [one for one in made.worker["env"] if one["name"] == "HF_TOKEN"]
    assert token["valueFrom"] == {"secretKeyRef": {"name": "hub-token", "key": "token"}}
    assert made.names("Secret") == []
    assert not any(one["name"] == "HF_TOKEN" for one in render().worker["env"])


# --- network


def test_clients_reach_an_internal_balancer_and_nothing_else(render: Render) -> None:
    made = render(**{"aws.network": {"clients": ["10.20.0.0/16", "10.30.1.0/24"]}})
    service = made.one("RayService")["spec"]["serveService"]
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["spec"]["loadBalancerSourceRanges"] == ["10.20.0.0/16", "10.30.1.0/24"]
    annotations = service["metadata"]["annotations"]
    assert annotations["service.beta.kubernetes.io/aws-load-balancer-internal"] == "true"
    (rule,) = made.one("NetworkPolicy", "clients-to-serve")["spec"]["ingress"]
    assert [source["ipBlock"]["cidr"] for source in rule["from"]] == [
        "10.20.0.0/16",
        "10.30.1.0/24",
    ]
    assert rule["ports"] == [{"port": 8000, "protocol": "TCP"}]


def test_without_clients_nobody_comes_in_from_outside(render: Render) -> None:
    made = render(**{"aws": None})
    service = made.one("RayService")["spec"]["serveService"]
    assert service["spec"]["type"] == "ClusterIP"
    assert "loadBalancerSourceRanges" not in service["spec"]
    assert "clients-to-serve" not in made.names("NetworkPolicy")
    assert made.one("NetworkPolicy", "deny-all")["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }


def test_a_namespace_can_be_a_client(render: Render) -> None:
    made = render(cluster={"client_namespaces": ("monitoring",)}, **{"aws": None})
    (rule,) = made.one("NetworkPolicy", "clients-to-serve")["spec"]["ingress"]
    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]


# --- rights


def test_no_role_has_a_star_and_only_the_efa_plugin_is_privileged(render: Render) -> None:
    for made in (render(), render(fleet={"instance": "trn2.48xlarge"})):
        for one in made.objects:
            for rule in one.get("rules", ()):
                assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
                assert "secrets" not in rule["resources"]
        privileged = {
            container["name"]
            for pod in pods(made)
            for container in containers(pod)
            if container["securityContext"].get("privileged")
        }
        assert privileged == {"efa-device-plugin"}


def test_engines_get_no_token_of_the_kubernetes_api(render: Render) -> None:
    made = render()
    assert made.one("ServiceAccount", "engine")["automountServiceAccountToken"] is False
    assert made.workers["template"]["spec"]["automountServiceAccountToken"] is False


def test_namespaces_carry_pod_security_labels(render: Render) -> None:
    made = render()
    levels = {
        one["metadata"]["name"]: one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for one in rendering.namespaces(made.deployment)
    }
    assert levels == {"kuberay-system": "restricted", "specrack": "baseline"}


def test_the_pods_that_serve_need_nothing_that_baseline_forbids(render: Render) -> None:
    made = render(cluster={"file_system": LUSTRE})
    for template in (made.ray["headGroupSpec"]["template"], made.workers["template"]):
        spec = template["spec"]
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert all("hostPath" not in volume for volume in spec["volumes"])
        for container in containers(template):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert not context.get("privileged")
            assert "add" not in context.get("capabilities", {})


# --- wiring


def test_every_mount_has_its_volume_and_every_volume_its_mount(render: Render) -> None:
    for changes in ({}, {"aws.weights": {"bucket": "my-models"}}):
        made = render(**changes)
        for pod in pods(made):
            volumes = {volume["name"] for volume in pod["spec"].get("volumes", ())}
            mounts = {
                mount["name"]
                for container in containers(pod)
                for mount in container.get("volumeMounts", ())
            }
            assert mounts == volumes


def test_every_selector_meets_its_pods(render: Render) -> None:
    made = render()
    for one in made.objects:
        if one["kind"] in ("DaemonSet", "Deployment"):
            wanted = one["spec"]["selector"]["matchLabels"]
            assert wanted.items() <= one["spec"]["template"]["metadata"]["labels"].items()


def test_the_mounted_config_maps_are_the_rendered_ones(render: Render) -> None:
    made = render()
    mounted = {
        volume["configMap"]["name"]
        for pod in pods(made)
        for volume in pod["spec"].get("volumes", ())
        if "configMap" in volume
    }
    assert mounted == set(made.names("ConfigMap"))


def test_another_plan_is_another_name_and_the_same_plan_the_same(render: Render) -> None:
    first, again = render(), render()
    other = render(**{"serving.speculation.draft_tokens": 4})
    assert first.names("ConfigMap") == again.names("ConfigMap")
    assert made_name(first, "plan") != made_name(other, "plan")
    assert made_name(first, "app") == made_name(other, "app")
    assert all(one["immutable"] for one in first.objects if one["kind"] == "ConfigMap")


def test_the_serve_application_is_a_package_at_the_import_path(render: Render) -> None:
    made = render()
    (application,) = serve_config(made)["applications"]
    module, _, function = application["import_path"].partition(":")
    package, _, name = module.partition(".")
    (volume,) = [
        volume for volume in made.workers["template"]["spec"]["volumes"] if volume["name"] == "app"
    ]
    paths = {item["path"] for item in volume["configMap"]["items"]}
    assert {f"{package}/__init__.py", f"{package}/{name}.py"} <= paths
    source = made.one("ConfigMap", made_name(made, "app"))["data"][f"{name}.py"]
    assert f"def {function}(" in source
    plan = made.one("ConfigMap", made_name(made, "plan"))["data"]
    assert json.loads(plan["launch-plan.json"])["deployment"] == "chat"
    assert application["args"]["plan"] == "/etc/specrack/plan/launch-plan.json"


def test_config_maps_are_far_below_the_limit_of_one_mib(render: Render) -> None:
    for one in render().objects:
        if one["kind"] == "ConfigMap":
            assert sum(map(len, one["data"].values())) < 600_000


def test_the_app_imports_nothing_of_specrack() -> None:
    for name, source in files.app_sources().items():
        assert "from infra" not in source, name
        assert "import infra" not in source, name


def test_the_environment_file_puts_ray_in_front_and_remembers_what_was(tmp_path: Path) -> None:
    script = tmp_path / "environment.sh"
    script.write_text(files.environment(engine_has_ray=False))
    done = subprocess.run(
        ["bash", "-c", 'bash -c "echo $PATH; echo $SPECRACK_ENGINE_PATH; echo $PYTHONPATH"'],
        env={"BASH_ENV": str(script), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    path, engine, python = done.stdout.splitlines()
    assert path == "/opt/specrack/ray/bin:/usr/bin:/bin"
    assert engine == "/usr/bin:/bin"
    assert python == "/opt/specrack/ray:/etc/specrack/app"


def test_the_lock_file_holds_the_pinned_ray() -> None:
    assert f"\nray=={versions.RAY} \\\n" in f"\n{files.ray_lock()}"


# --- the operator


def test_the_operator_watches_one_namespace_with_rights_there_alone(render: Render) -> None:
    made = render()
    values = rendering.chart(made.deployment, made.cluster).values
    assert values["watchNamespace"] == [names.NAMESPACE]
    assert values["singleNamespaceInstall"] is True
    assert values["image"]["tag"] == f"v{versions.KUBERAY}"


def test_the_same_input_gives_the_same_yaml(render: Render) -> None:
    first, again = (rendering.to_yaml(render().objects) for _ in range(2))
    assert first == again


def test_rendering_loads_nothing_heavy() -> None:
    program = (
        "import sys, infra.kubernetes.render\n"
        "print(sorted({'ray', 'boto3', 'cdktf', 'ansible_runner', 'prometheus_client'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
