"""EKS add-ons, access entries, pod identities, and the updates that Terraform waits for."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from moto.eks import urls
from moto.eks.exceptions import ResourceInUseException, ResourceNotFoundException
from moto.eks.responses import EKSResponse

from tests.rigs.aws.extension.registry import Parameters, attach, operation, store

#: add-on: (version, Kubernetes versions that it is for)
ADDONS = {
    "vpc-cni": "v1.20.4-eksbuild.1",
    "coredns": "v1.12.4-eksbuild.1",
    "kube-proxy": "v1.33.5-eksbuild.2",
    "eks-pod-identity-agent": "v1.3.9-eksbuild.3",
    "aws-ebs-csi-driver": "v1.51.1-eksbuild.1",
    "aws-fsx-csi-driver": "v1.7.0-eksbuild.1",
}
KUBERNETES = ("1.31", "1.32", "1.33", "1.34", "1.35")
PATHS = (
    "clusters/(?P<name>[^/]+)/addons$",
    "clusters/(?P<name>[^/]+)/addons/(?P<addonName>[^/]+)$",
    "clusters/(?P<name>[^/]+)/addons/(?P<addonName>[^/]+)/update$",
    "clusters/(?P<name>[^/]+)/updates$",
    "clusters/(?P<name>[^/]+)/updates/(?P<updateId>[^/]+)$",
    "clusters/(?P<name>[^/]+)/node-groups/(?P<nodegroupName>[^/]+)/update-version$",
    "clusters/(?P<name>[^/]+)/access-entries$",
    "clusters/(?P<name>[^/]+)/access-entries/(?P<rest>.+)$",
    "clusters/(?P<name>[^/]+)/pod-identity-associations$",
    "clusters/(?P<name>[^/]+)/pod-identity-associations/(?P<associationId>[^/]+)$",
    "addons/supported-versions$",
    "cluster-versions$",
)


def arn(response: Any, rest: str) -> str:
    return f"arn:aws:eks:{response.region}:{response.current_account}:{rest}"


def _tag(response: Any, resource: str, tags: dict[str, str] | None) -> None:
    store(response.eks_backend, "tags").setdefault(resource, {}).update(tags or {})


def _tags(response: Any, resource: str) -> dict[str, str]:
    return dict(store(response.eks_backend, "tags").get(resource, {}))


def _gone(message: str, **names: str) -> ResourceNotFoundException:
    return ResourceNotFoundException(message=message, **names)


# --- add-ons ------------------------------------------------------------------------------------


def _addon(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster, name = parameters["clusterName"], parameters["addonName"]
    found = store(response.eks_backend, "addons").get((cluster, name))
    if found is None:
        raise _gone(
            f"No addon: {name} found in cluster: {cluster}", clusterName=cluster, addonName=name
        )
    return found  # type: ignore[no-any-return]


def _addon_view(response: Any, addon: dict[str, Any]) -> dict[str, Any]:
    return {**addon, "tags": _tags(response, addon["addonArn"])}


@operation("eks", "CreateAddon")
def create_addon(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster, name = parameters["clusterName"], parameters["addonName"]
    response.eks_backend.describe_cluster(cluster)
    addons = store(response.eks_backend, "addons")
    if (cluster, name) in addons:
        raise ResourceInUseException(
            clusterName=cluster, addonName=name, message="Addon already exists."
        )
    now = datetime.now(UTC)
    addon = {
        "addonName": name,
        "clusterName": cluster,
        "status": "ACTIVE",
        "addonVersion": parameters.get("addonVersion") or ADDONS.get(name, "v1.0.0-eksbuild.1"),
        "health": {"issues": []},
        "addonArn": arn(response, f"addon/{cluster}/{name}/{uuid.uuid4()}"),
        "createdAt": now,
        "modifiedAt": now,
    }
    for optional in ("configurationValues", "serviceAccountRoleArn"):
        if parameters.get(optional):
            addon[optional] = parameters[optional]
    addons[cluster, name] = addon
    _tag(response, addon["addonArn"], parameters.get("tags"))
    return {"addon": _addon_view(response, addon)}


@operation("eks", "DescribeAddon")
def describe_addon(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {"addon": _addon_view(response, _addon(response, parameters))}


@operation("eks", "ListAddons")
def list_addons(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster = parameters["clusterName"]
    response.eks_backend.describe_cluster(cluster)
    return {"addons": [n for c, n in store(response.eks_backend, "addons") if c == cluster]}


@operation("eks", "UpdateAddon")
def update_addon(response: Any, parameters: Parameters) -> dict[str, Any]:
    found = _addon(response, parameters)
    for key in ("addonVersion", "configurationValues", "serviceAccountRoleArn"):
        if parameters.get(key):
            found[key] = parameters[key]
    return {"update": _update(response, "AddonUpdate")}


@operation("eks", "DeleteAddon")
def delete_addon(response: Any, parameters: Parameters) -> dict[str, Any]:
    found = _addon(response, parameters)
    del store(response.eks_backend, "addons")[found["clusterName"], found["addonName"]]
    return {"addon": {**_addon_view(response, found), "status": "DELETING"}}


@operation("eks", "DescribeAddonVersions")
def describe_addon_versions(response: Any, parameters: Parameters) -> dict[str, Any]:
    wanted = parameters.get("addonName")
    kubernetes = parameters.get("kubernetesVersion")
    versions = [kubernetes] if kubernetes else list(KUBERNETES)
    return {
        "addons": [
            {
                "addonName": name,
                "type": "networking",
                "addonVersions": [
                    {
                        "addonVersion": version,
                        "architecture": ["amd64"],
                        "compatibilities": [
                            {
                                "clusterVersion": one,
                                "platformVersions": ["*"],
                                "defaultVersion": True,
                            }
                            for one in versions
                        ],
                    }
                ],
            }
            for name, version in ADDONS.items()
            if not wanted or name == wanted
        ]
    }


@operation("eks", "DescribeClusterVersions")
def describe_cluster_versions(response: Any, parameters: Parameters) -> dict[str, Any]:
    wanted = parameters.get("clusterVersions") or KUBERNETES
    return {
        "clusterVersions": [
            {
                "clusterVersion": one,
                "clusterType": "eks",
                "defaultVersion": one == "1.33",
                "status": "standard-support",
                "versionStatus": "STANDARD_SUPPORT",
            }
            for one in KUBERNETES
            if one in wanted
        ]
    }


# --- updates ------------------------------------------------------------------------------------


def _update(response: Any, kind: str) -> dict[str, Any]:
    """Every change is done at once; Terraform asks for the update until it is."""
    made = {
        "id": str(uuid.uuid4()),
        "status": "Successful",
        "type": kind,
        "params": [],
        "createdAt": datetime.now(UTC),
        "errors": [],
    }
    store(response.eks_backend, "updates")[made["id"]] = made
    return made


@operation("eks", "DescribeUpdate")
def describe_update(response: Any, parameters: Parameters) -> dict[str, Any]:
    known = store(response.eks_backend, "updates")
    fallback = {"id": parameters["updateId"], "status": "Successful", "type": "ConfigUpdate"}
    return {"update": known.get(parameters["updateId"], fallback)}


@operation("eks", "UpdateClusterVersion")
def update_cluster_version(response: Any, parameters: Parameters) -> dict[str, Any]:
    response.eks_backend.describe_cluster(parameters["name"]).version = parameters["version"]
    return {"update": _update(response, "VersionUpdate")}


@operation("eks", "UpdateNodegroupVersion")
def update_nodegroup_version(response: Any, parameters: Parameters) -> dict[str, Any]:
    group = response.eks_backend.describe_nodegroup(
        parameters["clusterName"], parameters["nodegroupName"]
    )
    if parameters.get("version"):
        group.version = parameters["version"]
    if parameters.get("releaseVersion"):
        group.release_version = parameters["releaseVersion"]
    if parameters.get("launchTemplate"):
        group.launch_template = {**group.launch_template, **parameters["launchTemplate"]}
    return {"update": _update(response, "VersionUpdate")}


# --- access entries -----------------------------------------------------------------------------


def _entry(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster, principal = parameters["clusterName"], parameters["principalArn"]
    found = store(response.eks_backend, "access").get((cluster, principal))
    if found is None:
        raise _gone(
            "The specified principalArn could not be found. You can view your available access "
            "entries with 'ListAccessEntries'.",
            clusterName=cluster,
        )
    return found  # type: ignore[no-any-return]


def _entry_view(response: Any, entry: dict[str, Any]) -> dict[str, Any]:
    view = {key: value for key, value in entry.items() if key != "policies"}
    return {**view, "tags": _tags(response, entry["accessEntryArn"])}


@operation("eks", "CreateAccessEntry")
def create_access_entry(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster, principal = parameters["clusterName"], parameters["principalArn"]
    response.eks_backend.describe_cluster(cluster)
    entries = store(response.eks_backend, "access")
    if (cluster, principal) in entries:
        raise ResourceInUseException(
            clusterName=cluster,
            message="The specified access entry resource is already in use on this cluster.",
        )
    now = datetime.now(UTC)
    name = principal.split(":", 5)[-1]
    entry = {
        "clusterName": cluster,
        "principalArn": principal,
        "kubernetesGroups": list(parameters.get("kubernetesGroups") or []),
        "accessEntryArn": arn(response, f"access-entry/{cluster}/{name}/{uuid.uuid4()}"),
        "createdAt": now,
        "modifiedAt": now,
        "username": parameters.get("username") or principal,
        "type": parameters.get("type") or "STANDARD",
        "policies": {},
    }
    entries[cluster, principal] = entry
    _tag(response, entry["accessEntryArn"], parameters.get("tags"))
    return {"accessEntry": _entry_view(response, entry)}


@operation("eks", "DescribeAccessEntry")
def describe_access_entry(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {"accessEntry": _entry_view(response, _entry(response, parameters))}


@operation("eks", "ListAccessEntries")
def list_access_entries(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster = parameters["clusterName"]
    found = store(response.eks_backend, "access")
    return {"accessEntries": [principal for name, principal in found if name == cluster]}


@operation("eks", "DeleteAccessEntry")
def delete_access_entry(response: Any, parameters: Parameters) -> dict[str, Any]:
    entry = _entry(response, parameters)
    del store(response.eks_backend, "access")[entry["clusterName"], entry["principalArn"]]
    return {}


@operation("eks", "AssociateAccessPolicy")
def associate_access_policy(response: Any, parameters: Parameters) -> dict[str, Any]:
    entry = _entry(response, parameters)
    now = datetime.now(UTC)
    policy = {
        "policyArn": parameters["policyArn"],
        "accessScope": dict(parameters["accessScope"]),
        "associatedAt": now,
        "modifiedAt": now,
    }
    entry["policies"][parameters["policyArn"]] = policy
    return {
        "clusterName": entry["clusterName"],
        "principalArn": entry["principalArn"],
        "associatedAccessPolicy": policy,
    }


@operation("eks", "ListAssociatedAccessPolicies")
def list_associated_access_policies(response: Any, parameters: Parameters) -> dict[str, Any]:
    entry = _entry(response, parameters)
    return {
        "clusterName": entry["clusterName"],
        "principalArn": entry["principalArn"],
        "associatedAccessPolicies": list(entry["policies"].values()),
    }


@operation("eks", "DisassociateAccessPolicy")
def disassociate_access_policy(response: Any, parameters: Parameters) -> dict[str, Any]:
    _entry(response, parameters)["policies"].pop(parameters["policyArn"], None)
    return {}


# --- pod identities -----------------------------------------------------------------------------


def _association(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster, key = parameters["clusterName"], parameters["associationId"]
    found = store(response.eks_backend, "pod_identities").get((cluster, key))
    if found is None:
        raise _gone("The association was not found.", clusterName=cluster)
    return found  # type: ignore[no-any-return]


@operation("eks", "CreatePodIdentityAssociation")
def create_pod_identity_association(response: Any, parameters: Parameters) -> dict[str, Any]:
    cluster = parameters["clusterName"]
    response.eks_backend.describe_cluster(cluster)
    known = store(response.eks_backend, "pod_identities")
    place = (cluster, parameters["namespace"], parameters["serviceAccount"])
    if any((c, one["namespace"], one["serviceAccount"]) == place for (c, _), one in known.items()):
        raise ResourceInUseException(
            clusterName=cluster, message="Association already exists for that service account."
        )
    now = datetime.now(UTC)
    key = "a-" + uuid.uuid4().hex[:17]
    made = {
        "clusterName": cluster,
        "namespace": parameters["namespace"],
        "serviceAccount": parameters["serviceAccount"],
        "roleArn": parameters["roleArn"],
        "associationArn": arn(response, f"podidentityassociation/{cluster}/{key}"),
        "associationId": key,
        "tags": dict(parameters.get("tags") or {}),
        "createdAt": now,
        "modifiedAt": now,
    }
    known[cluster, key] = made
    return {"association": made}


@operation("eks", "DescribePodIdentityAssociation")
def describe_pod_identity_association(response: Any, parameters: Parameters) -> dict[str, Any]:
    return {"association": _association(response, parameters)}


@operation("eks", "ListPodIdentityAssociations")
def list_pod_identity_associations(response: Any, parameters: Parameters) -> dict[str, Any]:
    members = (
        "clusterName", "namespace", "serviceAccount", "associationArn", "associationId"
    )  # fmt: skip
    cluster = parameters["clusterName"]
    return {
        "associations": [
            {key: one[key] for key in members}
            for (name, _), one in store(response.eks_backend, "pod_identities").items()
            if name == cluster
        ]
    }


@operation("eks", "DeletePodIdentityAssociation")
def delete_pod_identity_association(response: Any, parameters: Parameters) -> dict[str, Any]:
    found = _association(response, parameters)
    del store(response.eks_backend, "pod_identities")[found["clusterName"], found["associationId"]]
    return {"association": found}


def install() -> None:
    attach(EKSResponse, "eks")
    for path in PATHS:
        urls.url_paths["{0}/" + path] = urls.response.dispatch
