export interface StreamLimits {
    /** The maximum size of a frame, in characters. */
    frameMaxChars: number;
    /** The maximum number of frames of one stream. */
    framesMax: number;
    /** The maximum size of one stream. */
    streamMaxBytes: number;
}
/** Yields the data of each server-sent event. @throws InvalidAgentAnswer when a limit is exceeded */
export declare function sseFrames(body: AsyncIterable<Buffer>, limits: StreamLimits): AsyncGenerator<string>;
