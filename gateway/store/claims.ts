/** Which of several holders has a name for a while. */
export interface Claims {
  /** Takes or renews the claim; false while another one holds it. Clocks of gateways agree within a few seconds. */
  hold(name: string, holder: string, forMs: number): Promise<boolean>
}
