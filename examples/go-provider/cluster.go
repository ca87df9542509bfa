package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

const finalizer = "acme.example.com/provider"

// ClusterReconciler sets the control plane endpoint and the failure domains of an AcmeCluster.
type ClusterReconciler struct{ client.Client }

func (r *ClusterReconciler) SetupWithManager(ctx context.Context, manager ctrl.Manager) error {
	ofCluster := util.ClusterToInfrastructureMapFunc(ctx, groupVersion.WithKind("AcmeCluster"), manager.GetClient(), &AcmeCluster{})
	return ctrl.NewControllerManagedBy(manager).
		For(&AcmeCluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster)).
		Complete(r)
}

func (r *ClusterReconciler) Reconcile(ctx context.Context, request ctrl.Request) (_ ctrl.Result, err error) {
	object := &AcmeCluster{}
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// If the AcmeCluster is externally managed, another system provisions it and writes its status.
	if annotations.IsExternallyManaged(object) {
		return ctrl.Result{}, nil
	}
	cluster, err := util.GetOwnerCluster(ctx, r, object.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	isDeleting := !object.DeletionTimestamp.IsZero()
	// Core sets the owner. A deletion needs no owner.
	if cluster == nil && !isDeleting {
		return ctrl.Result{}, nil
	}
	if isPaused, requeue, err := paused.EnsurePausedCondition(ctx, r, cluster, object); err != nil || isPaused || requeue {
		return ctrl.Result{}, err
	}
	if !isDeleting {
		if added, err := finalizers.EnsureFinalizer(ctx, r, object, finalizer); err != nil || added {
			return ctrl.Result{}, err
		}
	}
	patches, err := patch.NewHelper(object, r)
	if err != nil {
		return ctrl.Result{}, err
	}
	defer func() {
		owned := patch.WithOwnedConditions{Conditions: []string{clusterv1.PausedCondition, clusterv1.ReadyCondition}}
		if failed := patches.Patch(ctx, object, owned); failed != nil && err == nil {
			err = client.IgnoreNotFound(failed)
		}
	}()

	if isDeleting {
		controllerutil.RemoveFinalizer(object, finalizer)
		return ctrl.Result{}, nil
	}
	if object.Spec.ControlPlaneEndpoint.IsZero() {
		object.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	}
	isTrue := true
	object.Status.FailureDomains = []clusterv1.FailureDomain{
		{Name: "east", ControlPlane: &isTrue},
		{Name: "west", ControlPlane: &isTrue},
	}
	object.Status.Initialization.Provisioned = &isTrue
	setReady(object, metav1.ConditionTrue, "Provisioned", "")
	return ctrl.Result{}, nil
}

func setReady(object conditions.Setter, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(object, metav1.Condition{Type: clusterv1.ReadyCondition, Status: status, Reason: reason, Message: message})
}
