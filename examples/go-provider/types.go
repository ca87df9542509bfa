package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var groupVersion = schema.GroupVersion{Group: "infrastructure.acme.example.com", Version: "v1alpha1"}

// AcmeCluster is the infrastructure of one Cluster. Contract: InfraCluster.
type AcmeCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AcmeClusterSpec   `json:"spec,omitempty"`
	Status            AcmeClusterStatus `json:"status,omitempty"`
}

type AcmeClusterSpec struct {
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`
}

type AcmeClusterStatus struct {
	Initialization Initialization            `json:"initialization,omitempty,omitzero"`
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`
	Conditions     []metav1.Condition        `json:"conditions,omitempty"`
}

// AcmeMachine is the infrastructure of one Machine. Contract: InfraMachine.
type AcmeMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AcmeMachineSpec   `json:"spec,omitempty"`
	Status            AcmeMachineStatus `json:"status,omitempty"`
}

type AcmeMachineSpec struct {
	ProviderID string `json:"providerID,omitempty"`
	Size       string `json:"size,omitempty"`
}

type AcmeMachineStatus struct {
	Initialization Initialization             `json:"initialization,omitempty,omitzero"`
	Addresses      []clusterv1.MachineAddress `json:"addresses,omitempty"`
	FailureDomain  string                     `json:"failureDomain,omitempty"`
	Conditions     []metav1.Condition         `json:"conditions,omitempty"`
}

// Initialization reports to core whether the first provisioning is complete.
type Initialization struct {
	Provisioned *bool `json:"provisioned,omitempty"`
}

// GetConditions and SetConditions let the utilities of Cluster API read and write conditions.
func (c *AcmeCluster) GetConditions() []metav1.Condition           { return c.Status.Conditions }
func (c *AcmeCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }
func (m *AcmeMachine) GetConditions() []metav1.Condition           { return m.Status.Conditions }
func (m *AcmeMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

type AcmeClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AcmeCluster `json:"items"`
}

type AcmeMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AcmeMachine `json:"items"`
}

// In most providers, controller-gen generates the DeepCopyObject methods.

func (c *AcmeCluster) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Initialization.Provisioned = copyOf(c.Status.Initialization.Provisioned)
	out.Status.FailureDomains = nil
	for _, domain := range c.Status.FailureDomains {
		out.Status.FailureDomains = append(out.Status.FailureDomains, *domain.DeepCopy())
	}
	out.Status.Conditions = append([]metav1.Condition(nil), c.Status.Conditions...)
	return &out
}

func (m *AcmeMachine) DeepCopyObject() runtime.Object {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Initialization.Provisioned = copyOf(m.Status.Initialization.Provisioned)
	out.Status.Addresses = append([]clusterv1.MachineAddress(nil), m.Status.Addresses...)
	out.Status.Conditions = append([]metav1.Condition(nil), m.Status.Conditions...)
	return &out
}

func (l *AcmeClusterList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*AcmeCluster))
	}
	return &out
}

func (l *AcmeMachineList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*AcmeMachine))
	}
	return &out
}

func copyOf[T any](value *T) *T {
	if value == nil {
		return nil
	}
	out := *value
	return &out
}
