;; Dot products of one vector with many, for vector-store.ts. A vector has 384 integers of 8 bits; the one of the query is
;; stored with 16 bits per integer, so that each product needs one extension less. `dot-products.wasm` is compiled from
;; this file (vector-store.test.ts).
(module
  (memory (import "env" "memory") 1)
  (func (export "dots") (param $query i32) (param $vector i32) (param $count i32) (param $out i32)
    (local $at i32) (local $sum v128) (local $eight v128)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $sum (v128.const i32x4 0 0 0 0))
        (local.set $at (i32.const 0))
        (loop $sixteen
          (local.set $eight (v128.load (i32.add (local.get $vector) (local.get $at))))
          (local.set $sum
            (i32x4.add (local.get $sum)
              (i32x4.add
                (i32x4.dot_i16x8_s
                  (i16x8.extend_low_i8x16_s (local.get $eight))
                  (v128.load (i32.add (local.get $query) (i32.shl (local.get $at) (i32.const 1)))))
                (i32x4.dot_i16x8_s
                  (i16x8.extend_high_i8x16_s (local.get $eight))
                  (v128.load offset=16 (i32.add (local.get $query) (i32.shl (local.get $at) (i32.const 1))))))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br_if $sixteen (i32.lt_u (local.get $at) (i32.const 384))))
        (i32.store (local.get $out)
          (i32.add
            (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
            (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
        (local.set $vector (i32.add (local.get $vector) (i32.const 384)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))))
