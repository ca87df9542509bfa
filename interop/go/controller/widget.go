// Package controller has a controller of Widgets and their webhooks. For each Widget without the label managed=no, the controller adds a
// finalizer, records events, applies the box, which is a ConfigMap with the size and colour of the Widget, and writes the status.
package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "capstan.dev/interop/api/v1"
	"capstan.dev/interop/api/v1beta1"
)

const (
	Finalizer  = "shop.example.com/box"
	FieldOwner = client.FieldOwner("widget-controller")
)

// WidgetReconciler reconciles Widgets, see the package comment.
type WidgetReconciler struct {
	client.Client
	// Recorder writes events of core/v1, Events writes events of events.k8s.io.
	Recorder record.EventRecorder
	Events   events.EventRecorder
}

func (r *WidgetReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1.Widget{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

func (r *WidgetReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	widget := &v1.Widget{}
	if err := r.Get(ctx, req.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(widget, Finalizer) {
			return ctrl.Result{}, r.Update(ctx, widget)
		}
		return ctrl.Result{}, nil
	}
	if widget.Labels["managed"] == "no" {
		return ctrl.Result{}, nil
	}
	if !controllerutil.ContainsFinalizer(widget, Finalizer) {
		before := widget.DeepCopy()
		controllerutil.AddFinalizer(widget, Finalizer)
		if err := r.Patch(ctx, widget, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, err
		}
		r.Recorder.Event(widget, corev1.EventTypeNormal, "Adopted", "finalizer added")
		r.Events.Eventf(widget, nil, corev1.EventTypeNormal, "Adopted", "Adopt", "finalizer %s added", Finalizer)
	}

	box := corev1apply.ConfigMap(widget.Name, widget.Namespace).
		WithOwnerReferences(metav1apply.OwnerReference().
			WithAPIVersion(v1.GroupVersion.String()).WithKind("Widget").
			WithName(widget.Name).WithUID(widget.UID).
			WithController(true).WithBlockOwnerDeletion(true)).
		WithData(map[string]string{"size": fmt.Sprint(widget.Spec.Size), "colour": widget.Spec.Colour})
	if err := r.Apply(ctx, box, FieldOwner, client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the box: %w", err)
	}

	before := widget.DeepCopy()
	widget.Status.ObservedGeneration = widget.Generation
	widget.Status.Selector = "widget=" + widget.Name
	if widget.Spec.Replicas != nil {
		widget.Status.Replicas = *widget.Spec.Replicas
	}
	meta.SetStatusCondition(&widget.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Boxed", Message: "the box exists", ObservedGeneration: widget.Generation,
	})
	return ctrl.Result{}, r.Status().Patch(ctx, widget, client.MergeFrom(before))
}

// SetupWebhooks registers the webhooks of Widget for defaulting, validation and conversion.
func SetupWebhooks(mgr ctrl.Manager) error {
	if err := ctrl.NewWebhookManagedBy(mgr, &v1.Widget{}).WithDefaulter(widgetDefaults{}).WithValidator(widgetRules{}).Complete(); err != nil {
		return err
	}
	return ctrl.NewWebhookManagedBy(mgr, &v1beta1.Widget{}).Complete()
}

type widgetDefaults struct{}

func (widgetDefaults) Default(_ context.Context, widget *v1.Widget) error {
	metav1.SetMetaDataAnnotation(&widget.ObjectMeta, "shop.example.com/defaulted", "yes")
	return nil
}

type widgetRules struct{}

func (widgetRules) ValidateCreate(_ context.Context, widget *v1.Widget) (admission.Warnings, error) {
	if widget.Spec.Size == 13 {
		return nil, fmt.Errorf("thirteen brings bad luck")
	}
	if widget.Spec.Size > 50 {
		return admission.Warnings{"that is a large widget"}, nil
	}
	return nil, nil
}

func (rules widgetRules) ValidateUpdate(ctx context.Context, _, widget *v1.Widget) (admission.Warnings, error) {
	return rules.ValidateCreate(ctx, widget)
}

func (widgetRules) ValidateDelete(_ context.Context, widget *v1.Widget) (admission.Warnings, error) {
	if widget.Labels["keep"] == "yes" {
		return nil, fmt.Errorf("widget %s must not be deleted", widget.Name)
	}
	return nil, nil
}
