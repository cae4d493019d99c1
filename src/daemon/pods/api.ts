/**
 * The kubelet's API of device plugins, v1beta1, as far as Weir speaks it: numbers and names of fields are those of
 * k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.proto. Fields that are not here are ignored by who reads, as protobuf has it.
 */
import { type GrpcObject, loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";

export const kApiVersion = "v1beta1";

export interface Device {
  ID: string;
  health: "Healthy" | "Unhealthy";
}

export interface Mount {
  container_path: string;
  host_path: string;
  read_only: boolean;
}

/** What the container of one request gets. */
export interface Allocation {
  envs: Record<string, string>;
  mounts: Mount[];
}

export interface AllocateRequest {
  container_requests: { devices_ids: string[] }[];
}

export interface RegisterRequest {
  version: string;
  endpoint: string;
  resource_name: string;
}

const text = (id: number) => ({ type: "string", id });
const flag = (id: number) => ({ type: "bool", id });
const list = (type: string, id: number) => ({ rule: "repeated", type, id });
const call = (requestType: string, responseType: string) => ({ requestType, responseType });

const kDefinition: object = {
  nested: {
    [kApiVersion]: {
      nested: {
        Empty: { fields: {} },
        DevicePluginOptions: { fields: { pre_start_required: flag(1), get_preferred_allocation_available: flag(2) } },
        RegisterRequest: {
          fields: {
            version: text(1),
            endpoint: text(2),
            resource_name: text(3),
            options: { type: "DevicePluginOptions", id: 4 },
          },
        },
        Device: { fields: { ID: text(1), health: text(2) } },
        ListAndWatchResponse: { fields: { devices: list("Device", 1) } },
        ContainerAllocateRequest: { fields: { devices_ids: list("string", 1) } },
        AllocateRequest: { fields: { container_requests: list("ContainerAllocateRequest", 1) } },
        Mount: { fields: { container_path: text(1), host_path: text(2), read_only: flag(3) } },
        ContainerAllocateResponse: {
          fields: { envs: { keyType: "string", type: "string", id: 1 }, mounts: list("Mount", 2) },
        },
        AllocateResponse: { fields: { container_responses: list("ContainerAllocateResponse", 1) } },
        Registration: { methods: { Register: call("RegisterRequest", "Empty") } },
        DevicePlugin: {
          methods: {
            GetDevicePluginOptions: call("Empty", "DevicePluginOptions"),
            ListAndWatch: { ...call("Empty", "ListAndWatchResponse"), responseStream: true },
            Allocate: call("AllocateRequest", "AllocateResponse"),
          },
        },
      },
    },
  },
};

// The types know neither maps nor methods without a comment; the library takes both.
const definition = kDefinition as Parameters<typeof fromJSON>[0];
const loaded = loadPackageDefinition(fromJSON(definition, { keepCase: true, defaults: true }));
const services = loaded[kApiVersion] as GrpcObject;

/** Of the kubelet, at kubelet.sock. */
export const Registration = services.Registration as ServiceClientConstructor;
/** Of a plugin, at the socket that it has registered. */
export const DevicePlugin = services.DevicePlugin as ServiceClientConstructor;
