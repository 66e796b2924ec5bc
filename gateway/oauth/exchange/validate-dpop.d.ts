/** oidc-provider publishes no types for the function with which its own grants verify DPoP proofs. */
declare module 'oidc-provider/lib/helpers/validate_dpop.js' {
  import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

  interface DpopProof {
    thumbprint: string
    jti: string
    iat: number
  }
  /** Returns undefined for a request without a proof. @throws InvalidDpopProof, UseDpopNonce */
  export default function validateDpop(
    provider: Provider,
    ctx: KoaContextWithOIDC,
  ): Promise<DpopProof | undefined>
  /** @throws InvalidGrant for a proof that was used before */
  export function checkDpopReplay(
    provider: Provider,
    ctx: KoaContextWithOIDC,
    proof: DpopProof | undefined,
    clientId: string,
  ): Promise<void>
}
