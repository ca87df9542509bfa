package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/paused"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// MachineReconciler reports an AcmeMachine as provisioned once the Cluster's infrastructure and the bootstrap data of the Machine are ready. The
// cloud of this example is imaginary, so the reconciler creates and deletes no instances.
type MachineReconciler struct{ client.Client }

func (r *MachineReconciler) SetupWithManager(_ context.Context, manager ctrl.Manager) error {
	ofCluster, err := util.ClusterToTypedObjectsMapper(manager.GetClient(), &AcmeMachineList{}, manager.GetScheme())
	if err != nil {
		return err
	}
	ofMachine := util.MachineToInfrastructureMapFunc(groupVersion.WithKind("AcmeMachine"))
	return ctrl.NewControllerManagedBy(manager).
		For(&AcmeMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster)).
		Complete(r)
}

func (r *MachineReconciler) Reconcile(ctx context.Context, request ctrl.Request) (_ ctrl.Result, err error) {
	object := &AcmeMachine{}
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	machine, err := util.GetOwnerMachine(ctx, r, object.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	isDeleting := !object.DeletionTimestamp.IsZero()
	// Core sets the owner. A deletion needs no owner.
	if machine == nil && !isDeleting {
		return ctrl.Result{}, nil
	}
	var cluster *clusterv1.Cluster
	if machine != nil {
		if cluster, err = util.GetClusterFromMetadata(ctx, r, machine.ObjectMeta); err != nil && !isDeleting {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
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
	if provisioned := object.Status.Initialization.Provisioned; provisioned != nil && *provisioned {
		return ctrl.Result{}, nil
	}
	if provisioned := cluster.Status.Initialization.InfrastructureProvisioned; provisioned == nil || !*provisioned {
		setReady(object, metav1.ConditionFalse, "WaitingForClusterInfrastructure", "The Cluster has no infrastructure yet")
		return ctrl.Result{}, nil
	}
	if machine.Spec.Bootstrap.DataSecretName == nil {
		setReady(object, metav1.ConditionFalse, "WaitingForBootstrapData", "The Machine has no bootstrap data yet")
		return ctrl.Result{}, nil
	}
	isTrue := true
	object.Spec.ProviderID = fmt.Sprintf("acme:////%s/%s", object.Namespace, object.Name)
	object.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalDNS, Address: object.Name}}
	object.Status.FailureDomain = machine.Spec.FailureDomain
	object.Status.Initialization.Provisioned = &isTrue
	setReady(object, metav1.ConditionTrue, "Provisioned", "")
	return ctrl.Result{}, nil
}
