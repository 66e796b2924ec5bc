import type { FileContent, JsonObject, Part } from '@parley/wire/model/task';
/**
 * What a handler returns or yields. A string or a data object is a part of the answer; yielded strings are streamed
 * as deltas and joined. `artifact(…)` and `file(…)` make artifacts of their own.
 */
export type Output = string | JsonObject | OutputArtifact | OutputFile | Pause | undefined | void | null;
declare const brand: unique symbol;
export interface OutputFile {
    [brand]: 'file';
    file: FileContent & {
        bytes: string;
    };
}
/** A named artifact of several parts. */
export interface OutputArtifact {
    [brand]: 'artifact';
    name: string;
    parts: Part[];
}
export type Artifact = OutputArtifact;
/** Made by `ask`, `requireAuth`, `requirePayment`, `bid` and `decline` of the context; return it. */
export interface Pause {
    [brand]: 'pause';
    kind: 'ask' | 'auth' | 'payment' | 'bid' | 'decline';
    parts: Part[];
}
type Content = string | JsonObject | OutputFile;
/** A file of the answer, an artifact named as the file. `bytes` as text (UTF-8) or bytes. */
export declare function file(name: string, mimeType: string, bytes: string | Uint8Array): OutputFile;
/** A data object as part of the answer; the same as returning the object, for readers who want it said. */
export declare function data(object: JsonObject): JsonObject;
/** An artifact with a name, of texts, data objects and files. */
export declare function artifact(name: string, ...content: Content[]): OutputArtifact;
export declare function pause(kind: Pause['kind'], parts: Part[]): Pause;
export declare function partOf(content: Content): Part;
export declare const isFile: (value: unknown) => value is OutputFile;
export declare const isArtifact: (value: unknown) => value is OutputArtifact;
export declare const isPause: (value: unknown) => value is Pause;
export {};
