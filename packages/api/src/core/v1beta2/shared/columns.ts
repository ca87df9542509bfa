/** Columns that several kinds have in common. */
import { type Column, column } from '@capstan/kube'

export const clusterColumn = column('Cluster', '.spec.clusterName', {
  description: 'Name of the Cluster that the object belongs to',
})

export const availableColumn = column('Available', '.status.conditions[?(@.type=="Available")].status', {
  description: 'Passes all availability checks',
})

export const pausedColumn = column('Paused', '.status.conditions[?(@.type=="Paused")].status', {
  priority: 10,
  description: 'Reconciliation paused',
})

export const phaseColumn = column('Phase', '.status.phase', { description: 'Phase of the lifecycle' })

export const ageColumn = column('Age', '.metadata.creationTimestamp', { type: 'date', description: 'Time since creation' })

/** Returns the column of the Kubernetes version at `path`. */
export const versionColumn = (path: string): Column => column('Version', path, { description: 'Kubernetes version' })
